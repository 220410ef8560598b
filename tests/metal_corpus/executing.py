"""Runs kernels of a project and compares their results with references."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal

import torch

from mpsmith.simulator.metal import MetalRuntimeError, MetalSyntaxError, Mode, ShaderLibrary, checking
from mpsmith.simulator.metal import compile as compile_metal

from .projects import Project
from .recipes import Recipe, RecipeCall

Outcome = Literal["agrees", "disagrees", "their defect", "stopped"]


@dataclass(frozen=True)
class KernelRun:
    """The result of a kernel in a mode.

    Attributes:
        recipe: what the kernel computes.
        matching: how many kernels of the file match the recipe.
        outcome: "their defect" is a wrong result whose cause is known and in the project; "stopped" is an error of the
            simulator.
        reason: empty if the result agrees.
    """

    project: str
    file: str
    recipe: str
    matching: int
    kernel: str
    mode: Mode
    outcome: Outcome
    reason: str


def execute_project(
    project: Project, tree: Path, each: int, checked: int, recipes: Sequence[Recipe]
) -> Iterator[KernelRun]:
    """A result for each kernel that ran, and one more for each that also ran in `checked`.

    Args:
        project: the project.
        tree: the folder with its files.
        each: how many kernels of a recipe to run, spread over their names; 0 for all.
        checked: how many of these to run in `checked`, too.
        recipes: how to call kernels.
    """
    root = tree / project.root
    seen: set[str] = set()  # a kernel that several files include counts once
    for source in project.sources(tree):
        file = str(source.file.relative_to(root))
        for_file = [r for r in recipes if r.project == project.name and f"/{file}".endswith(f"/{r.file}")]
        for constants, same in groupby(for_file, key=lambda r: tuple(r.constants.items())):
            library = compile_metal(
                source.text,
                filename=source.file,
                include=project.include_folders(tree),
                defines=project.define,
                constants=dict(constants),
            )
            for recipe in same:
                matching = sorted(k for k in dir(library) if recipe.matches(k) and k not in seen)
                seen.update(matching)
                selected = spread(matching, each)
                in_checked = spread(selected, checked) if checked else []
                runs: list[tuple[str, Mode]] = [(k, "fast") for k in selected] + [(k, "checked") for k in in_checked]
                for kernel, mode in runs:
                    outcome, reason = run(recipe, library, kernel, mode)
                    yield KernelRun(project.name, file, recipe.name, len(matching), kernel, mode, outcome, reason)


def spread(names: Sequence[str], count: int) -> list[str]:
    """`count` names at even distances; all of them for 0."""
    if not count or count >= len(names):
        return list(names)
    return [names[i * len(names) // count] for i in range(count)]


def run(recipe: Recipe, library: ShaderLibrary, kernel: str, mode: Mode) -> tuple[Outcome, str]:
    """Call a kernel; returns the outcome and its reason."""
    outcome, reason = _call(recipe, library, kernel, mode)
    if not recipe.defect:
        return outcome, reason
    return (
        ("their defect", f"{recipe.defect} ({reason})") if reason else ("disagrees", "the known defect does not show")
    )


def _call(recipe: Recipe, library: ShaderLibrary, kernel: str, mode: Mode) -> tuple[Outcome, str]:
    call = recipe.call_of(kernel)
    assert call is not None, f"{recipe.name} does not match {kernel}"
    try:
        with checking(mode):
            getattr(library, kernel)(
                *call.arguments,
                threads=call.threads,
                group_size=call.group,
                arg_casts=dict(call.casts),
                threadgroup_lengths=call.threadgroup_lengths,
            )
    except (MetalRuntimeError, MetalSyntaxError, ValueError) as error:
        return "stopped", _without_folders(str(error))
    reason = "; ".join(filter(None, (_difference(call, index) for index in call.expected)))
    return ("disagrees", reason) if reason else ("agrees", "")


def _without_folders(message: str) -> str:
    """The message without the folders of this machine."""
    return re.sub(r"(?:/?[\w.+-]+/)+([\w.-]+\.(?:metal|h)\b)", r"\1", " ".join(message.split()))


def _difference(call: RecipeCall, index: int) -> str:
    """The difference at this argument index, or an empty string."""
    memory, expected = call.arguments[index], call.expected[index]
    assert isinstance(memory, torch.Tensor)
    actual = call.reading[index](memory) if index in call.reading else memory
    actual = actual.reshape(expected.shape)
    if not (memory.is_floating_point() or memory.is_complex()):
        if memory.dtype is torch.bool:  # as bytes: only 0 and 1 are truth values
            actual, expected = actual.view(torch.uint8), expected.view(torch.uint8)
        wrong = actual != expected
        return _describe(index, wrong, actual, expected) if wrong.any() else ""
    wide = actual.to(expected.dtype)
    limit = call.roundings * torch.finfo(memory.dtype).eps * expected.abs().clamp(min=call.least)
    close = ((wide - expected).abs() <= limit) | (wide == expected) | (wide.isnan() & expected.isnan())
    return "" if close.all() else _describe(index, ~close, wide, expected)


def _describe(index: int, wrong: torch.Tensor, actual: torch.Tensor, expected: torch.Tensor) -> str:
    first = tuple(int(i[0]) for i in wrong.nonzero(as_tuple=True))
    where = f"[{', '.join(map(str, first))}]"
    return (
        f"argument {index}: {int(wrong.sum())} of {wrong.numel()} are wrong, such as {where}, "
        f"which is {actual[first].item()} and not {expected[first].item()}"
    )
