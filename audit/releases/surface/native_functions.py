"""Reads native_functions.yaml: every operator overload that PyTorch declares and its kernels for each backend.

The same reader serves the installed torch and the yaml of any release since 1.12. It never imports torch, which
would take longer than reading the file.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import yaml

from ....errors import MpsmithError

NATIVE_FUNCTIONS = Path("packaged/ATen/native/native_functions.yaml")
DERIVATIVES = Path("packaged/autograd/derivatives.yaml")

_ARGUMENT = re.compile(r"(?:^|[\s*])([A-Za-z_]\w*)\s*(?:=.*)?$")


@dataclass(frozen=True)
class NativeFunction:
    """One `func:` entry of native_functions.yaml.

    `dispatch` maps each dispatch key to the name of its C++ kernel (`CPU, CUDA: foo` gives two entries).
    `structured_delegate` names the out overload whose kernels this overload shares. `autogen` lists the overloads
    that PyTorch's code generator adds for this one. `composite` means that the entry has neither `dispatch:` nor a
    delegate: the function calls other operators. (`dispatch: {}`, in contrast, declares a function without kernels.)
    """

    name: str
    schema: str
    dispatch: Mapping[str, str]
    structured: bool = False
    structured_delegate: str | None = None
    tags: tuple[str, ...] = ()
    variants: tuple[str, ...] = ("function",)
    autogen: tuple[str, ...] = ()
    python_module: str | None = None
    category_override: str | None = None
    composite: bool = False

    @property
    def operator(self) -> str:
        """The name without the overload: `mode` of `mode.values`."""
        return operator_of(self.name)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the schema's arguments, in order, out arguments included."""
        return argument_names(self.schema)


def operator_of(overload: str) -> str:
    """The name without the overload, `mode` for `mode.values`; a namespace is kept."""
    return overload.partition(".")[0]


def functional_name(overload: str) -> str:
    """The operator under which an in-place overload is counted: `add` for `add.Tensor` and for `add_.Tensor`.

    Python's special methods keep their underscores: `__ilshift__`.
    """
    operator = operator_of(overload)
    return operator if operator.startswith("__") else operator.rstrip("_")


def argument_names(schema: str) -> tuple[str, ...]:
    """The argument names of a schema such as `mode(Tensor self, int dim=-1) -> (Tensor values, Tensor indices)`."""
    names = []
    for part in split_arguments(schema):
        declaration = _ARGUMENT.search(part.strip())
        if declaration:
            names.append(declaration.group(1))
    return tuple(names)


def split_arguments(schema: str) -> list[str]:
    """The declarations between the schema's first parenthesis and its match, such as `int dim=-1`.

    Raises ValueError for a schema without that pair of parentheses.
    """
    start = schema.index("(") + 1
    depth, parts = 1, []
    for position in range(start, len(schema)):
        character = schema[position]
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(character, 0)
        if depth == 0 or (depth == 1 and character == ","):
            parts.append(schema[start:position].strip())
            start = position + 1
        if depth == 0:
            return [part for part in parts if part]
    raise ValueError(f"schema without a closing bracket: {schema}")


def parse(text: bytes | str, source: str) -> list[NativeFunction]:
    """Read the text of a native_functions.yaml. `source` names it in error messages.

    Raises MpsmithError when the text is not YAML, or not a list of `func:` entries.
    """
    entries = load_entries(text, source)
    functions = []
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict) or not isinstance(entry.get("func"), str):
            raise MpsmithError(f"{source}: entry {number} has no `func:`; this is not a native_functions.yaml")
        functions.append(_function(entry, source))
    return functions


def load_entries(text: bytes | str, source: str) -> list[object]:
    """The entries of one of PyTorch's yaml lists. Raises MpsmithError with the line unless it is a well-formed list."""
    # libyaml is 10 times as fast; a PyYAML built without it still reads the file.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        entries = yaml.load(text, Loader=loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise MpsmithError(f"{source}{where}: not valid YAML ({_first_line(error)})") from None
    if not isinstance(entries, list) or not entries:
        raise MpsmithError(f"{source}: expected a list of entries, as in PyTorch's native_functions.yaml")
    return entries


def _first_line(error: Exception) -> str:
    problem = getattr(error, "problem", None)
    return str(problem) if problem else str(error).splitlines()[0]


def _function(entry: dict[str, object], source: str) -> NativeFunction:
    schema = str(entry["func"])
    name = schema.partition("(")[0].strip()
    dispatch = entry.get("dispatch") or {}
    if not isinstance(dispatch, dict) or "(" not in schema:
        raise MpsmithError(f"{source}: {name}: malformed entry")
    delegate = entry.get("structured_delegate")
    module = entry.get("python_module")
    category = entry.get("category_override")
    return NativeFunction(
        name=name,
        schema=schema,
        dispatch={key: str(kernel) for keys, kernel in dispatch.items() for key in names_in(keys)},
        structured=entry.get("structured") is True,
        structured_delegate=str(delegate) if delegate else None,
        tags=names_in(entry.get("tags")),
        variants=names_in(entry.get("variants")) or ("function",),
        autogen=names_in(entry.get("autogen")),
        python_module=str(module) if module else None,
        category_override=str(category) if category else None,
        composite="dispatch" not in entry and not delegate,
    )


def names_in(value: object) -> tuple[str, ...]:
    """The names in a field that PyTorch writes as a YAML list or as comma-separated text; empty for None."""
    if value is None:
        return ()
    parts = value if isinstance(value, list) else str(value).split(",")
    return tuple(stripped for part in parts if (stripped := str(part).strip()))


def installed_path() -> Path:
    """The native_functions.yaml of the installed torch, found without importing torch.

    Raises MpsmithError when torch is not installed or does not ship the file.
    """
    return _packaged(NATIVE_FUNCTIONS)


def installed_derivatives_path() -> Path | None:
    """The derivatives.yaml of the installed torch, or None if that release does not ship it (before 2.1)."""
    path = _packaged(NATIVE_FUNCTIONS).parents[3] / DERIVATIVES
    return path if path.is_file() else None


def installed_release() -> str:
    """The version of the installed torch as its metadata says, such as `2.13.0+cpu`, without importing it."""
    try:
        return version("torch")
    except PackageNotFoundError:
        raise MpsmithError("torch is not installed here; install it with: pip install torch") from None


def _packaged(relative: Path) -> Path:
    spec = importlib.util.find_spec("torchgen")
    if spec is None or not spec.submodule_search_locations:
        raise MpsmithError("torch is not installed here; install it with: pip install torch")
    path = Path(next(iter(spec.submodule_search_locations))) / relative
    if not path.is_file():
        raise MpsmithError(f"the installed torch has no {relative.name} (looked for {path}); torch 2.7 or newer has it")
    return path
