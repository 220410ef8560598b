"""Overloads as plain data: for `--json`, for reports, and for the cache of surfaces."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from .overloads import Dispatch, Overload, Surface
from .reachability import Reachable, Unreachable


def to_json(overload: Overload) -> dict[str, Any]:
    """The overload as JSON data; `unreachable` is null or holds the rule and its reason."""
    reach = overload.reach
    return {
        "name": overload.name,
        "operator": overload.operator,
        "schema": overload.schema,
        "dispatch": overload.dispatch.value,
        "declared": overload.declared.value,
        "tags": list(overload.tags),
        "has_autograd_formula": overload.has_autograd_formula,
        "sparse": overload.sparse,
        "sparse_compressed": overload.sparse_compressed,
        "python_module": overload.python_module,
        "generated_from": overload.generated_from,
        "delegates_to": overload.delegates_to,
        "unreachable": {"rule": reach.rule, "reason": reach.reason} if isinstance(reach, Unreachable) else None,
    }


def from_json(row: dict[str, Any]) -> Overload:
    """The overload that `to_json` wrote. Raises KeyError, TypeError or ValueError on anything else."""
    fields = dict(row)
    unreachable = fields.pop("unreachable")
    fields["reach"] = Unreachable(**unreachable) if unreachable else Reachable()
    fields["dispatch"] = Dispatch(fields["dispatch"])
    fields["declared"] = Dispatch(fields["declared"])
    fields["tags"] = tuple(fields["tags"])
    return Overload(**fields)


def read_surface(path: Path) -> Surface | None:
    """The surface stored at `path`, or None if there is none or it is damaged."""
    try:
        stored = json.loads(path.read_bytes())
        return Surface(tuple(from_json(row) for row in stored["overloads"]), stored["release"], stored["source"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_surface(path: Path, surface: Surface) -> None:
    """Store the surface atomically. If the folder cannot be written, the next call is slower."""
    stored = {
        "release": surface.release,
        "source": surface.source,
        "overloads": [to_json(overload) for overload in surface.overloads],
    }
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(stored))
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
