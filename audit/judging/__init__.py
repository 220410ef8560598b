"""Runs one case on the device and on the CPU, and says whether a user could see a difference."""
