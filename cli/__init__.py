"""The ``mpsmith`` command line."""

def main() -> None:
    """Run the command line."""
