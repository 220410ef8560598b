"""One audit on many machines: its groups travel as plain data over Dask distributed, and their rows come back."""
