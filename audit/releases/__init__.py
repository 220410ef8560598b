"""What is known of every minor release without its wheel: committed data, and how it is computed again."""
