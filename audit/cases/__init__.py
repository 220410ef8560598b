"""Which calls are worth a try: remembered calls, sources of cases, covering arrays, the search for arguments."""
