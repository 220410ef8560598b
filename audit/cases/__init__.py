"""Makes the cases: recorded calls, case sources, covering arrays, the argument search."""
