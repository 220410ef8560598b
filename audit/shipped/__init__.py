"""The kernels that torch ships to Macs in an audit: of which release, in which cases, and what became of the calls."""
