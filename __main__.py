"""``python -m mpsmith``: the same as the ``mpsmith`` command."""

from .cli import main

if __name__ == "__main__":
    main()
