"""Which calls are worth a try: recorded calls, sources of cases, covering arrays, the search for arguments."""
