"""`mpsmith build`: an extension for the mps device of this machine, be it a Mac's or the simulated one."""
