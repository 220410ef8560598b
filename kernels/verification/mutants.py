"""Mistakes put into the kernels of families, and which mode finds each.

    python -m mpsmith.kernels.verification.mutants [--families mode,pdist] [--markdown FILE]

A mutant changes a family's Metal source, or how the family launches it. The family's own calls then run on the
simulated device, in `checked` and again in `schedules`, in each until one fails. The report also lists the mutants that
no mode detects.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODES = ("checked", "schedules")
FAMILIES = (
    *("embedding_renorm", "segment_reduce", "variance", "extremum"),
    *("hash_tensor", "multi_margin_loss", "multilabel_margin_loss", "mode"),
)

_BARRIER = re.compile(r"\bthreadgroup_barrier\((?P<flags>[^;]*)\);")
_SHARED = re.compile(r"\bthreadgroup\s+[\w:<>]+\s*\*?\s*(?P<name>\w+)\s*(?=[\[,)])")
_INPUT = re.compile(r"\b(?:device\s+const|const\s+device)\s+\w+\s*\*\s*(?P<name>\w+)")
_OUTPUT = re.compile(r"(?<!const )\bdevice\s+(?!const)\w+\s*\*\s*(?P<name>\w+)")
_OTHER_FLAGS = {"mem_threadgroup": "mem_device", "mem_device": "mem_threadgroup"}


@dataclass(frozen=True)
class Mutant:
    """A mistake: what it does to Metal source, or to the name, the arguments and the options of a launch."""

    name: str
    source: Callable[[str], str] = lambda text: text
    kernel: Callable[[str], str] = lambda name: name
    launch: Callable[[Sequence[Any], dict[str, Any]], tuple[Sequence[Any], dict[str, Any]]] = lambda args, options: (
        args,
        options,
    )


def _without_barriers(text: str) -> str:
    return _BARRIER.sub(";", text)


def _with_other_flags(text: str) -> str:
    def other(match: re.Match[str]) -> str:
        return re.sub(r"mem_threadgroup|mem_device", lambda flag: _OTHER_FLAGS[flag[0]], match[0])

    return _BARRIER.sub(other, text)


def _for_simdgroups(text: str) -> str:
    return _BARRIER.sub(r"simdgroup_barrier(\g<flags>);", text)


def _skipped_barriers(text: str) -> str:
    return _BARRIER.sub(r"if (!simd_is_first()) threadgroup_barrier(\g<flags>);", text)


def _without_shared_stores(text: str) -> str:
    names = {match["name"] for match in _SHARED.finditer(text)}
    for name in names:
        text = re.sub(rf"(?<![\w.]){name}\[[^;=]*\]\s*=(?!=)[^;]*;", ";", text)
    return text


def _one_further(text: str, name: str, is_store: bool) -> str:
    behind = r"(?=\s*=(?!=))" if is_store else r"(?!\s*=(?!=))"
    return re.sub(rf"(?<![\w.]){name}\[(?P<index>[^\[\]]+)\]{behind}", rf"{name}[(\g<index>) + 1]", text)


def _loads_one_further(text: str) -> str:
    for name in {match["name"] for match in _INPUT.finditer(text)}:
        text = _one_further(text, name, is_store=False)
    return text


def _stores_one_further(text: str) -> str:
    for name in {match["name"] for match in _OUTPUT.finditer(text)}:
        text = _one_further(text, name, is_store=True)
    return text


def _integers_as_floats(args: Sequence[Any], options: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    if options.get("arg_casts"):  # it makes integers of them again
        return args, options

    def other(argument: Any) -> Any:
        if isinstance(argument, list | tuple) and argument and all(type(one) is int for one in argument):
            return [float(one) for one in argument]
        return float(argument) if type(argument) is int else argument

    return [other(argument) for argument in args], options


def _the_last_dropped(args: Sequence[Any], options: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    return args[:-1], options


MUTANTS = (
    Mutant("barriers are missing", _without_barriers),
    Mutant("barriers order the other memory", _with_other_flags),
    Mutant("barriers of a SIMD group alone", _for_simdgroups),
    Mutant("one thread of a SIMD group skips the barriers", _skipped_barriers),
    Mutant("threadgroup memory is not written", _without_shared_stores),
    Mutant("loads one element too far", _loads_one_further),
    Mutant("stores one element too far", _stores_one_further),
    Mutant("half tensors bound to float*", kernel=lambda name: re.sub(r"half(?=_|$)", "float", name)),
    Mutant("integers passed as floats", launch=_integers_as_floats),
    Mutant("the last argument is dropped", launch=_the_last_dropped),
)


@dataclass(frozen=True)
class MutantOutcome:
    """What became of one mutant in one family: the modes that `found` it, and `how`, the message of the first."""

    mutant: str
    family: str
    found: tuple[str, ...]
    how: str
    changes: bool

    @property
    def cell(self) -> str:
        """For a table: `-` where the family has no place for the mistake."""
        if not self.changes:
            return "-"
        return "both" if self.found == MODES else ", ".join(self.found) or "**not found**"


@contextmanager
def _in_place(mutant: Mutant, changed: list[bool]) -> Iterator[None]:
    """Inside, all families' kernels are the mutant's."""
    from ..runtime import shader

    plain, kernel = shader.assembled, shader.Shader.kernel

    def assembled(path: Path) -> str:
        text = plain(path)
        mutated = mutant.source(text)
        changed[0] |= mutated != text
        return mutated

    def mutated_kernel(self: shader.Shader, name: str, device: Any) -> Any:
        other = mutant.kernel(name)
        changed[0] |= other != name
        compiled = kernel(self, other, device)

        def launch(*args: Any, **options: Any) -> None:
            new_args, new_options = mutant.launch(args, options)
            changed[0] |= list(map(repr, new_args)) != list(map(repr, args)) or new_options != options
            compiled(*new_args, **new_options)

        return launch

    shader.assembled = assembled
    shader.Shader.kernel = mutated_kernel  # type: ignore[method-assign]
    _forget_kernels()
    try:
        yield
    finally:
        shader.assembled, shader.Shader.kernel = plain, kernel  # type: ignore[method-assign]
        _forget_kernels()


def _forget_kernels() -> None:
    from ..runtime.shader import Shader

    for one in gc.get_objects():
        if isinstance(one, Shader):
            one._kernels.clear()
            one._libraries.clear()


def outcome(mutant: Mutant, family: str) -> MutantOutcome:
    """Run the family's own calls with the mistake in each mode, until one fails."""
    changed = [False]
    found: dict[str, str] = {}
    with _in_place(mutant, changed):
        for mode in MODES:
            os.environ["MPSMITH_METAL_MODE"] = mode  # of what is compiled from now on
            _forget_kernels()
            how = _first_failure(family)
            if how:
                found[mode] = how
            elif not changed[0]:
                break
    return MutantOutcome(mutant.name, family, tuple(found), next(iter(found.values()), ""), changed[0])


def _first_failure(family: str) -> str:
    import torch

    from ...audit.judging.acceptance import judged
    from ...audit.releases.surface.profiles import coverage_profile
    from ...simulator.opening import device_of_this_process
    from .source import calls_of
    from .verify import SEED

    for dtype in (torch.float32, torch.float16, torch.int64, torch.int8):
        for call in calls_of(family):
            if dtype in call.dtypes:
                for one in judged(
                    call.cases(dtype), device_of_this_process(coverage_profile).recorder, SEED, call.label
                ):
                    if one.refused:
                        return one.reason
    return ""


def table(outcomes: Sequence[MutantOutcome]) -> str:
    """Markdown: a row for each mistake, a column for each family, and how many were found, in which mode."""
    families = list(dict.fromkeys(one.family for one in outcomes))
    lines = [f"| mistake | {' | '.join(families)} |", f"|{'---|' * (len(families) + 1)}"]
    for name in dict.fromkeys(one.mutant for one in outcomes):
        cells = [one.cell for one in outcomes if one.mutant == name]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    placed = [one for one in outcomes if one.changes]
    found = sum(bool(one.found) for one in placed)
    by_mode = ", ".join(f"{sum(mode in one.found for one in placed)} in {mode}" for mode in MODES)
    return "\n".join([*lines, "", f"{found} of {len(placed)} mutants are found: {by_mode}.", ""])


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 1 where a mutant is not found."""
    parser = argparse.ArgumentParser(prog="python -m mpsmith.kernels.verification.mutants", description=__doc__)
    parser.add_argument("--families", default=",".join(FAMILIES), help="separated by commas")
    parser.add_argument("--mutants", default="", help="only those whose names contain this")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="where the table goes; else it is printed")
    options = parser.parse_args(arguments)
    os.environ["MPSMITH_KERNELS"] = "off"
    from ...audit.releases.surface.profiles import coverage_profile
    from ...simulator.opening import DeviceKind, open_device
    from ..runtime import catalog
    from ..runtime.registration import enable

    open_device(DeviceKind.SIMULATED, coverage_profile)
    families = options.families.split(",")
    enable(*(kernel.overload for family in families for kernel in catalog.family(family)))
    outcomes = []
    for mutant in MUTANTS:
        for family in families if options.mutants in mutant.name else ():
            one = outcome(mutant, family)
            outcomes.append(one)
            print(f"{mutant.name}, {family}: {one.cell} {one.how[:160]}", file=sys.stderr, flush=True)
    text = table(outcomes)
    if options.markdown:
        options.markdown.write_text(text, encoding="utf-8")
    else:
        print(text)
    return 0 if all(one.found or not one.changes for one in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
