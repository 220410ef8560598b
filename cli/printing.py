"""How commands print: results on standard output, progress on standard error."""

from __future__ import annotations

import json
import sys


def say(text: str) -> None:
    """Print a line of progress on standard error."""
    print(text, file=sys.stderr, flush=True)


# The version of every --json; it changes when a key changes its meaning or goes (docs/json.md).
JSON_VERSION = 1


def print_json(data: object) -> None:
    """Print a result as JSON: an object with its version. A list of rows becomes its `rows`."""
    rows = data if isinstance(data, dict) else {"rows": data}
    print(json.dumps({"version": JSON_VERSION, **rows}, indent=1))
