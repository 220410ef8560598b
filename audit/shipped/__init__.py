"""Shipped kernels in an audit: of which release, in which cases, and with which launches."""
