"""Finds the operator that a user means: a name, an alias, a module, a method call or a part of a program.

torch's OpInfos are called `nn.functional.softshrink` or `linalg.svd`, its modules `nn.Softshrink`, and its operators
`softshrink` and `linalg_svd`. A user may write any of them, or `F.softshrink`, `torch.mode(x)`, `x.mode()`.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from ...errors import MpsmithError, near, one_line
from ..releases.surface.native_functions import functional_name

_NAMESPACES = ("nn.functional.", "nn.", "linalg.", "fft.", "special.", "")
_PREFIXES = ("torch.ops.aten.", "torch.ops.", "torch.Tensor.", "torch.", "Tensor.", "aten::", "aten.")
_ALIASES = {"F.": "nn.functional.", "functional.": "nn.functional.", "LA.": "linalg."}
_SPELLINGS = yaml.safe_load(Path(__file__).with_name("spellings.yaml").read_text("utf-8"))
_PYTHON_UNLESS_AN_OPERATOR = re.compile("|".join(_SPELLINGS["python_unless_an_operator"]))
_OPERATORS: dict[str, str] = _SPELLINGS["operators"]
# An expression such as `x @ y`, or the symbol alone; and its method, `x.__matmul__`.
_SYMBOLS: dict[str, str] = _SPELLINGS["symbols"]
_SYMBOL = "|".join(map(re.escape, sorted(_SYMBOLS, key=len, reverse=True)))
_EXPRESSION = re.compile(rf"\w+\s*(?P<between>{_SYMBOL})=?\s*\w+|(?P<alone>{_SYMBOL})|~\s*\w+")
_METHOD = re.compile(rf"(?:.*\.)?__i?({'|'.join(_SPELLINGS['methods'])})__")
KERNELS_OF_OTHER_LIBRARIES: dict[str, list[str]] = _SPELLINGS["kernels_of_other_libraries"]


@dataclass(frozen=True)
class ResolvedName:
    """The meaning of a name that a user wrote.

    Attributes:
        shown: the name to show: `linalg.svd`, `mode`, `nn.Linear`.
        operator: the functional operator without namespace, "" for a function or module of several operators.
        overload: the overload, if the user named one with its suffix: `mode.values`.
        public: the names of torch's OpInfos and modules for it.
    """

    shown: str
    operator: str
    overload: str = ""
    public: tuple[str, ...] = ()


class Names:
    """All names that have an answer."""

    def __init__(self, overloads: Iterable[str], public: Iterable[str]) -> None:
        self.overloads: dict[str, list[str]] = {}
        for overload in overloads:
            self.overloads.setdefault(functional_name(overload), []).append(overload)
        self.public: dict[str, list[str]] = {}
        self._functions: set[str] = set()
        taken = {*self.overloads, *(overload for listed in self.overloads.values() for overload in listed)}
        for name in public:
            if name in self.overloads and name not in self.overloads[name]:
                self.public.setdefault(name, []).append(name)  # OpInfo's `add`; the overloads are add.Tensor, ...
            if name in taken or name.startswith("torch.ops."):
                continue
            self._functions.add(name)
            operator = functional_operator_of(name, self.overloads)
            if operator:
                self.public.setdefault(operator, []).append(name)
        self._modules = {name.lower(): name for name in self._functions if not _is_function(name)}
        functions = (*self.overloads, *filter(_is_function, self._functions), *_OPERATORS)
        self._of_modules = {f"nn.{_squeezed(name.removeprefix('nn.functional.'))}": name for name in functions}

    @property
    def functions(self) -> list[str]:
        """Every function and module that is not called like an operator, `linalg.svd`, `nn.Linear`; sorted."""
        return sorted(self._functions)

    def find(self, text: str) -> ResolvedName:
        """The meaning of `text`. Raises MpsmithError with similar names for an unknown name."""
        if not text.strip():
            raise MpsmithError("the name is empty: give an operator, function or module, such as softshrink")
        plain = _of_python(text) or without_call(text)
        for candidate in _candidates(plain):
            if meant := self._exact(candidate):
                return meant
        if plain.startswith("nn.") and (function := self._of_modules.get(plain.lower())):
            return self._exact(function) or self._of_operator(_OPERATORS[function])
        self._refuse_elsewhere(plain)
        # Not `x.mode`, but `net.layer.mode`: the last part is what is called.
        last = plain.rpartition(".")[2]
        if "." in plain and (meant := self._exact(_OPERATORS.get(last, last))):
            return meant
        for private in (f"_{last}", f"{last}_"):
            if private in self.overloads:
                return self._of_operator(private)
        if any(map(_PYTHON_UNLESS_AN_OPERATOR.fullmatch, (plain, last))):
            raise MpsmithError(_traced(plain))
        raise MpsmithError(self._unknown(plain, text))

    def has_match(self, pattern: str) -> bool:
        """Whether a shell pattern matches the name of an operator, overload, function or module, however spelled."""
        plain = pattern.removeprefix("aten::")
        if plain.replace("_", "").lower() in {name.rpartition(".")[2] for name in self._modules}:
            return True
        overloads = (overload for listed in self.overloads.values() for overload in listed)
        every = {*self.overloads, *self._functions, *overloads}
        every |= {name.rpartition(".")[2] for name in self._functions} | {name.replace(".", "_") for name in every}
        return bool(fnmatch.filter(every, plain))

    def _refuse_elsewhere(self, plain: str) -> None:
        """Raise MpsmithError for a name of another library, or of a part of torch that is not an operator."""
        first, _, rest = plain.partition(".")
        if refusal := _SPELLINGS["refused"].get(plain):
            raise MpsmithError(refusal)
        if rest and first in _SPELLINGS["libraries"]:
            raise MpsmithError(_traced(plain, "not of torch"))
        if rest and first in _SPELLINGS["python"]:
            fused = f"_fused_{rest.lower()}"
            more = f"; with fused=True it calls one: mpsmith why {fused}_" if fused in self.overloads else ""
            raise MpsmithError(_traced(plain) + more)

    def _exact(self, name: str) -> ResolvedName | None:
        name = _SPELLINGS["functions"].get(name, name)
        if name in self._functions:
            operator = functional_operator_of(name, self.overloads)
            return self._of_operator(operator, name) if operator else ResolvedName(name, "", public=(name,))
        operator = functional_name(name)
        if operator in self.overloads and name in (operator, f"{operator}_"):
            return self._of_operator(operator)
        if name in self.overloads.get(operator, ()):
            return ResolvedName(name, operator, name)
        for module in (name.lower(), f"nn.{_squeezed(name.removeprefix('nn.functional.'))}"):
            if module in self._modules and (module == name.lower() or name.startswith("nn.functional.")):
                return self._exact(self._modules[module])
        underscored = name.replace(".", "_")
        return self._of_operator(underscored) if underscored in self.overloads else None

    def _of_operator(self, operator: str, shown: str = "") -> ResolvedName:
        public = tuple(self.public.get(operator, ()))
        return ResolvedName(
            shown or next((name for name in public if _is_function(name)), operator), operator, "", public
        )

    def _unknown(self, plain: str, text: str) -> str:
        first, _, last = plain.rpartition(".")
        text = one_line(text, 80)
        if overloads := dict.fromkeys(name.rpartition(".")[2] for name in self.overloads.get(first, ()) if "." in name):
            return f"{first} has no overload {last!r}; it has {', '.join(overloads)}"
        if plain.startswith("nn.") and last[:1].isupper():
            hint = near(plain, self._modules.values())
            return f"mpsmith knows no module {text!r}{hint}"
        written = {name.rpartition(".")[2]: name for name in sorted(self._functions, reverse=True)}
        written |= {operator: operator for operator in self.overloads if not operator.startswith("_")}
        cased = {name.lower(): name for name in sorted(written, key=str.islower)}  # functions before modules
        hint = near(last.lower(), cased)
        for lower, name in cased.items():
            hint = re.sub(rf"\b{re.escape(lower)}\b", name, hint) if lower != name else hint
        return f"mpsmith knows no operator, function or module {text!r}{hint}"


def without_call(text: str) -> str:
    """`x.mode` of `x.mode(dim=1)`, and no namespace that says only that it is torch's."""
    plain = text.strip().partition("(")[0].strip()
    for prefix in _PREFIXES:
        plain = plain.removeprefix(prefix)
    plain = plain.removesuffix(".default")
    for short, long in _ALIASES.items():
        if plain.startswith(short):
            plain = long + plain.removeprefix(short)
    return re.sub(r"^nn\.(modules\.(\w+\.)?)?(Lazy)?", "nn.", plain)


def _of_python(text: str) -> str:
    """The operator of an expression: `__getitem__` of `x[mask]`, `double` of a float64; "" for others."""
    if item := re.fullmatch(r"[\w.]+\[.*\](\s*=[^=].*)?", text.strip()):
        return "index_put_" if item[1] else "__getitem__"
    if expression := _EXPRESSION.fullmatch(text.strip()):
        return _SYMBOLS[expression["between"] or expression["alone"] or "~"]
    called, _, arguments = text.partition("(")
    if method := _METHOD.fullmatch(called.strip()):
        return str(_SPELLINGS["methods"][method[1]])
    dtype = re.search(r"\b(float64|complex128)\b", arguments if called.endswith(".to") else called)
    return str(_SPELLINGS["dtypes"][dtype[1]]) if dtype else ""


def _traced(plain: str, what: str = "Python code around operators") -> str:
    return f"{plain} is {what}; `mpsmith trace train.py` shows which operators a program calls"


def _squeezed(name: str) -> str:
    return name.replace("_", "").lower()


def _candidates(plain: str) -> list[str]:
    """The spellings of a name, the most literal first."""
    cased = plain.rpartition(".")[2]
    spellings = [plain, *(f"{space}{plain}" for space in _NAMESPACES if space)]
    if cased.lower() == cased and not plain.startswith("nn."):
        spellings = [plain.replace(".", "_"), *spellings] if "." in plain else spellings
    if plain.startswith("sparse."):
        spellings.append(f"_{plain.replace('.', '_')}")
    return [_OPERATORS.get(spelling, spelling) for spelling in spellings]


def functional_operator_of(public: str, overloads: Mapping[str, object]) -> str:
    """The functional operator that a public function calls: `linalg_svd` for `linalg.svd`; "" if it calls several."""
    function = _OPERATORS.get(public, public.removeprefix("nn.functional."))
    if public.startswith("nn.") and function == public:
        return ""
    for name in (function, function.replace(".", "_")):
        if name in overloads:
            return name
    return ""


def _is_function(name: str) -> bool:
    return name.rpartition(".")[2].islower()
