"""Searches for arguments that the CPU accepts, and verifies that the calls are reproducible."""
