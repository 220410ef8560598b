"""`mpsmith try`: builds a project's checkout for the simulated device as its own build would, and runs its tests."""
