"""Attributes the cases of a source entry to overloads.

A case calls an operator as its source names it ("nn.functional.softshrink"). Which overloads that reaches is known
from the called_overloads, the overloads that traced cases called; the names in fallback reports are exact already.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from ..model.group import GroupKey
from ..releases.surface.overloads import Dispatch, Overload, Surface

ALIAS_ANNOTATION = re.compile(r"\([a-z|]+!?(?:\s*->\s*[^)]*)?\)")
TOP_LEVEL_COMMA = re.compile(r",\s*(?![^\[(]*[\])])")


@dataclass(frozen=True, order=True)
class SourceEntry:
    """One entry of a case source: all its dtypes and modes together."""

    source: str
    operator: str
    variant: str

    @classmethod
    def of(cls, key: GroupKey) -> SourceEntry:
        """The entry that a group belongs to."""
        return cls(key.source, key.operator, key.variant)

    @property
    def name(self) -> str:
        """For people: operator[.variant], without the source."""
        return f"{self.operator}.{self.variant}" if self.variant else self.operator


@dataclass(frozen=True)
class Suspects:
    """The overloads that a case may count for. If there are several, the case does not show which one is at fault.

    `namesakes`: they are overloads of the operator that the entry is named after.
    """

    overloads: tuple[str, ...]
    namesakes: bool

    @property
    def certain(self) -> bool:
        """Whether there is exactly one suspect."""
        return len(self.overloads) == 1


class Attribution:
    """Links the groups of one run to overloads.

    Args:
        surface: the overloads that exist.
        called_overloads: for each group the overloads that it called, True for those called by the user's own code.
    """

    def __init__(self, surface: Surface, called_overloads: Mapping[GroupKey, Mapping[str, bool]]) -> None:
        self._surface = surface
        self._by_dtype: dict[tuple[SourceEntry, str], dict[str, bool]] = {}
        self._outermost: defaultdict[SourceEntry, set[str]] = defaultdict(set)
        for key, overloads in called_overloads.items():
            entry = SourceEntry.of(key)
            outermost_by_name = self._by_dtype.setdefault((entry, key.dtype), {})
            for name, outermost in overloads.items():
                outermost_by_name[name] = outermost_by_name.get(name, False) or outermost
                if outermost:
                    self._outermost[entry].add(name)
        self._suspects: dict[tuple[SourceEntry, str], Suspects] = {}
        self._delegating: dict[tuple[SourceEntry, str, str], tuple[str, ...]] = {}

    def called_overloads(self, entry: SourceEntry, dtype: str) -> Mapping[str, bool]:
        """The overloads that the entry called with this dtype, over both modes; True for outermost calls."""
        return self._by_dtype.get((entry, dtype), {})

    def called(self, entry: SourceEntry, dtype: str) -> set[str]:
        """The overloads that the entry calls with this dtype; with any dtype, if nothing was traced for this one."""
        if with_this_dtype := self._by_dtype.get((entry, dtype)):
            return set(with_this_dtype)
        return {name for (traced_entry, _), names in self._by_dtype.items() if traced_entry == entry for name in names}

    def suspects(self, entry: SourceEntry, dtype: str) -> Suspects:
        """The suspects of a finding that names no operator: a wrong result, a crash, a time-out, a refused dtype.

        The overload itself where the entry is named after one. Else the outermost overload; of several, those named
        like the entry, else all of them. Where nothing was traced (the first case crashed), what the entry calls with
        other dtypes; failing that, the overloads of that name.
        """
        key = (entry, dtype)
        if key not in self._suspects:
            self._suspects[key] = self._find_suspects(entry, dtype)
        return self._suspects[key]

    def fallen_back(self, entry: SourceEntry, dtype: str, named: Iterable[str]) -> tuple[str, ...]:
        """The overloads that fell back when the device reported `named`.

        A structured operator is reported as its out overload. The functional and in-place overloads that the entry
        called and that delegate to it are added.
        """
        fallbacks = dict.fromkeys(named)
        for name in tuple(fallbacks):
            key = (entry, dtype, name)
            if key not in self._delegating:
                self._delegating[key] = tuple(self._delegating_to(name, self.called_overloads(entry, dtype)))
            fallbacks.update(dict.fromkeys(self._delegating[key]))
        return tuple(fallbacks)

    def _delegating_to(self, name: str, called_overloads: Iterable[str]) -> list[str]:
        out = self._surface.by_name.get(name)
        if out is None or not out.schema or (wanted := out_arguments(out.schema)) is None:
            return []
        overloads = (self._surface.by_name.get(tracer) for tracer in called_overloads)
        return [w.name for w in overloads if w and w.name != name and _is_functional_form(w, out, wanted)]

    def _find_suspects(self, entry: SourceEntry, dtype: str) -> Suspects:
        exact = f"aten::{entry.operator}"
        if "." in entry.operator and exact in self._surface.by_name:  # the source calls this very overload
            return Suspects((exact,), namesakes=True)
        with_this_dtype = {name for name, outermost in self.called_overloads(entry, dtype).items() if outermost}
        outermost = with_this_dtype or self._outermost.get(entry)
        if outermost:
            like_the_entry = [name for name in outermost if base_name(name) in _base_names(entry.operator)]
            return Suspects(tuple(sorted(like_the_entry or outermost)), namesakes=bool(like_the_entry))
        return Suspects(tuple(sorted(self._functional_overloads(entry.operator))), namesakes=True)

    def _functional_overloads(self, operator: str) -> list[str]:
        """The overloads that a call under this name most likely reaches; none when the surface has no such name."""
        for spelling in (operator.rsplit(".", 1)[-1], operator.replace(".", "_")):
            overloads = self._surface.by_operator.get(f"aten::{spelling}", ())
            functional = [o.name for o in overloads if not o.autogenerated and "!" not in o.schema]
            if functional:
                return functional
        return []


class LocatedFaults:
    """The overloads that were found at fault inside cases."""

    def __init__(self) -> None:
        self._by_symptom: defaultdict[tuple[SourceEntry, str, tuple[str, str]], Counter[str]] = defaultdict(Counter)
        self._by_entry: defaultdict[tuple[SourceEntry, str], Counter[str]] = defaultdict(Counter)
        self._by_dtype: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, entry: SourceEntry, dtype: str, symptom: tuple[str, str], overload: str) -> None:
        """Record the overload at fault in a case with this symptom."""
        self._by_symptom[entry, dtype, symptom][overload] += 1
        self._by_entry[entry, dtype][overload] += 1
        self._by_dtype[dtype].add(overload)

    def overload_for(
        self, entry: SourceEntry, dtype: str, symptom: tuple[str, str], *, looked_inside: bool
    ) -> str | None:
        """The overload most often at fault in cases of the entry with this symptom; failing that, in any of its cases.

        `looked_inside`: no inner call was wrong. Then only cases with the same symptom count.
        """
        counted = self._by_symptom.get((entry, dtype, symptom))
        if counted is None and not looked_inside:
            counted = self._by_entry.get((entry, dtype))
        return counted.most_common(1)[0][0] if counted else None

    def at_fault(self, dtype: str) -> set[str]:
        """The overloads that are at fault in some case of the dtype."""
        return self._by_dtype.get(dtype, set())

    def at_fault_anywhere(self) -> set[str]:
        """The overloads that are at fault in some case of any dtype."""
        return set().union(*self._by_dtype.values())


def base_name(overload: str) -> str:
    """The operator's bare name: "softshrink" for "aten::softshrink_.out"; underscores at both ends do not count."""
    return overload.split("::", 1)[-1].split(".", 1)[0].strip("_")


@cache
def is_named_after(operator: str, overload: str) -> bool:
    """Whether the entry that a source calls `operator` is one of the overload's own operator, and not of what calls it.

    "nn.functional.linear", "linalg.svd" and "linear.out" are; "masked.mean" is a separate function, which calls mean.
    """
    parts = operator.split(".")
    names = {"_".join(parts), parts[0]}  # parts[0]: entries that are overloads, "linear.out"
    if parts[:-1] == ["nn", "functional"]:
        names.add(parts[-1])
    elif "aten" in parts:
        names.update(parts[parts.index("aten") + 1 :][:1])
    return base_name(overload) in {name.strip("_") for name in names}


@cache
def _base_names(operator: str) -> frozenset[str]:
    """The bare names under which ATen may know what a source calls `operator`."""
    parts = operator.split(".")
    if "aten" in parts:  # torch.ops.aten.NAME.OVERLOAD
        parts = parts[parts.index("aten") + 1 :][:1] or parts
    of_module = (parts[-1].lower(),) if parts[:-1] == ["nn"] else ()  # nn.LSTM calls aten::lstm
    return frozenset(name.strip("_") for name in (parts[-1], "_".join(parts), *of_module))


@cache
def out_arguments(schema: str) -> tuple[str, ...] | None:
    """The arguments of an out overload's schema without the out tensors; None when it is not an out overload."""
    arguments = _arguments(schema)
    if "*" not in arguments:
        return None
    keyword_only = arguments[arguments.index("*") + 1 :]
    if not any("!" in argument for argument in keyword_only):
        return None
    return _plain(argument for argument in arguments if not (argument in keyword_only and "!" in argument))


def _is_functional_form(overload: Overload, out: Overload, wanted: tuple[str, ...]) -> bool:
    """Whether `overload` takes the arguments of `out`, less the out tensors, under the same name."""
    if not overload.schema or base_name(overload.name) != base_name(out.name):
        return False
    if overload.dispatch is Dispatch.NATIVE:  # runs its own kernel, whatever its out overload does
        return False
    return out_arguments(overload.schema) is None and _plain(_arguments(overload.schema)) == wanted


@cache
def _arguments(schema: str) -> tuple[str, ...]:
    inside = schema[schema.index("(") + 1 : schema.rindex(") ->")]
    return tuple(argument for argument in TOP_LEVEL_COMMA.split(inside) if argument)


def _plain(arguments: Iterable[str]) -> tuple[str, ...]:
    """Type and name of each argument, without aliasing, defaults and the keyword-only mark."""
    return tuple(ALIAS_ANNOTATION.sub("", a).split("=", 1)[0] for a in arguments if a != "*")
