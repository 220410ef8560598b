"""Shipped kernels in an audit: which release's, in which cases, and their launches."""
