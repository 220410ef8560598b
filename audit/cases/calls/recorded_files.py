"""The recorded calls as text: a folder of files, sharded as the registry is, so that a relearn is a readable diff.

A file holds overloads in the order of their names, each on one line with what is known of it, and below it a line for
each of its calls, indented:

    aten::relu {"dtypes":["float32"],"schema":"1a2b3c4d"}
      {"args":[{"dtype":"float32","shape":[3],"values":[1.0,2.0,3.0]}],"dtype":"float32","kwargs":{}}

A list of tensors whose values are drawn is written once for all of them: `tensors` has their shapes, and each tensor's
seed is one more than that of the tensor before it:

    {"dtype":"float32","range":[-9.0,9.0],"seed":3,"tensors":[[20,20],[19,19]]}

The same content gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ....registry.folder import shard_of

# What is known of an overload, its calls included, under the names of the fields of `OverloadCalls`.
Fields = dict[str, Any]

RELEASE = "torch.txt"
INDENT = "  "


def read(folder: Path) -> tuple[str, dict[str, Fields]]:
    """The torch release of a memory, and its overloads in the order of their names.

    Raises OSError if a file cannot be read (FileNotFoundError where there is no memory), and ValueError with the
    name and line of a file that is damaged.
    """
    release = (folder / RELEASE).read_text(encoding="utf-8").strip()
    overloads: dict[str, Fields] = {}
    for path in _shards(folder):
        overloads.update(_parsed(path))
    return release, dict(sorted(overloads.items()))


def write(folder: Path, release: str, overloads: Mapping[str, Fields]) -> None:
    """Make the folder hold just these overloads; a file whose text stays as it is is not touched.

    Raises OSError if the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shards: dict[str, list[str]] = {}
    for name in sorted(overloads):
        shards.setdefault(f"{shard_of(name.partition('.')[0])}.txt", []).extend(_lines(name, overloads[name]))
    for path in _shards(folder):
        if path.name not in shards:
            path.unlink()
    for file, lines in shards.items():
        _replace(folder / file, "\n".join(lines) + "\n")
    _replace(folder / RELEASE, f"{release}\n")


def _shards(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.txt") if path.name != RELEASE)


def _parsed(path: Path) -> dict[str, Fields]:
    overloads: dict[str, Fields] = {}
    calls: list[Any] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            if line.startswith(INDENT):
                calls.append(_expanded(json.loads(line)))
            else:
                name, _, facts = line.partition(" ")
                overloads[name] = json.loads(facts)
                overloads[name]["calls"] = calls = []
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path.name}:{number}: {error}") from error
    return overloads


def _lines(name: str, fields: Fields) -> Iterator[str]:
    yield f"{name} {_json({field: value for field, value in fields.items() if field != 'calls'})}"
    for call in fields.get("calls", ()):
        yield INDENT + _json(_compact(call))


def _expanded(value: Any) -> Any:
    """The recipe with a recipe for each tensor of a list that is written once for all."""
    if isinstance(value, list):
        return [_expanded(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "tensors" not in value:
        return {name: _expanded(item) for name, item in value.items()}
    common = {"dtype": value["dtype"], "range": value["range"]}
    return [{"shape": shape, "seed": value["seed"] + i, **common} for i, shape in enumerate(value["tensors"])]


def _compact(value: Any) -> Any:
    """The opposite of `_expanded`."""
    if isinstance(value, dict):
        return {name: _compact(item) for name, item in value.items()}
    if not isinstance(value, list):
        return value
    if value and isinstance(value[0], dict) and "seed" in value[0]:
        shared = {name: value[0][name] for name in ("dtype", "range", "seed")}
        whole = {**shared, "tensors": [item.get("shape") for item in value if isinstance(item, dict)]}
        if _expanded(whole) == value:
            return whole
    return [_compact(item) for item in value]


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _replace(path: Path, text: str) -> None:
    """Replace a file atomically, unless its text is the same."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    temporary = path.with_suffix(".new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
