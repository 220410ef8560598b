"""The coverage of every minor release: committed data, and how it is computed from wheels."""
