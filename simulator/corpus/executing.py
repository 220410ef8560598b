"""Runs kernels of a project by their recipes, and compares what they wrote with the references."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal

import torch

from ..metal import MetalRuntimeError, MetalSyntaxError, Mode, ShaderLibrary, checking
from ..metal import compile as compile_metal
from .projects import Project
from .recipes import Recipe, RecipeCall

Outcome = Literal["agrees", "disagrees", "their defect", "stopped"]


@dataclass(frozen=True)
class KernelRun:
    """How a kernel fared in a mode: `reason` is empty where its result is the reference's.

    Attributes:
        recipe: what the kernel computes.
        of: how many kernels of the project the recipe is for.
        outcome: "their defect" is a result that is wrong for a reason that the recipe names; "stopped" is one that the
            simulator refused.
    """

    project: str
    file: str
    recipe: str
    of: int
    kernel: str
    mode: Mode
    outcome: Outcome
    reason: str


def execute_project(
    project: Project, tree: Path, each: int, checked: int, recipes: Sequence[Recipe]
) -> Iterator[KernelRun]:
    """A result for each kernel that was run, and one more for each that also ran in `checked`.

    Args:
        project: whose kernels.
        tree: the folder with its files.
        each: how many kernels of a recipe to run, spread over their names; 0 for all.
        checked: how many of these to run in `checked`, too.
        recipes: how kernels are called.
    """
    root = tree / project.root
    met: set[str] = set()  # a kernel that several programs of a project include counts once
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
                known = sorted(kernel for kernel in dir(library) if recipe.is_for(kernel) and kernel not in met)
                met.update(known)
                yield from _of_recipe(recipe, library, known, project, file, each, checked)


def _of_recipe(
    recipe: Recipe,
    library: ShaderLibrary,
    known: Sequence[str],
    project: Project,
    file: str,
    each: int,
    checked: int,
) -> Iterator[KernelRun]:
    chosen = spread(known, each)
    also_checked = set(spread(chosen, checked)) if checked else set()
    for kernel in chosen:
        modes: list[Mode] = ["fast", "checked"] if kernel in also_checked else ["fast"]
        for mode in modes:
            outcome, reason = run(recipe, library, kernel, mode)
            yield KernelRun(project.name, file, recipe.name, len(known), kernel, mode, outcome, reason)


def spread(names: Sequence[str], count: int) -> list[str]:
    """As many of the names, evenly; all of them for 0."""
    if not count or count >= len(names):
        return list(names)
    return [names[i * len(names) // count] for i in range(count)]


def run(recipe: Recipe, library: ShaderLibrary, kernel: str, mode: Mode) -> tuple[Outcome, str]:
    """Calls one kernel; returns how it fared, and why."""
    outcome, reason = _called(recipe, library, kernel, mode)
    if not recipe.defect or mode not in recipe.defect_shows_in:
        return outcome, reason
    return ("their defect", f"{recipe.defect} ({reason})") if reason else ("disagrees", "its defect does not show")


def _called(recipe: Recipe, library: ShaderLibrary, kernel: str, mode: Mode) -> tuple[Outcome, str]:
    call = recipe.call_of(kernel)
    assert call is not None, f"{recipe.name} is not for {kernel}"
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
        return "stopped", _without_places(str(error))
    reason = "; ".join(filter(None, (_difference(call, index) for index in call.expected)))
    return ("disagrees", reason) if reason else ("agrees", "")


def _without_places(message: str) -> str:
    """The message without the folders of this machine."""
    return re.sub(r"(?:/?[\w.+-]+/)+([\w.-]+\.(?:metal|h)\b)", r"\1", " ".join(message.split()))


def _difference(call: RecipeCall, index: int) -> str:
    """What is wrong with the memory at this index, or nothing."""
    memory, expected = call.arguments[index], call.expected[index]
    assert isinstance(memory, torch.Tensor)
    actual = call.reading[index](memory) if index in call.reading else memory
    actual = actual.reshape(expected.shape)
    if not (memory.is_floating_point() or memory.is_complex()):
        if memory.dtype is torch.bool:  # as bytes: only 0 and 1 are truth values
            actual, expected = actual.view(torch.uint8), expected.view(torch.uint8)
        wrong = actual != expected
        return _told(index, wrong, actual, expected) if wrong.any() else ""
    wide = actual.to(expected.dtype)
    limit = call.roundings * torch.finfo(memory.dtype).eps * expected.abs().clamp(min=call.least)
    close = ((wide - expected).abs() <= limit) | (wide == expected) | (wide.isnan() & expected.isnan())
    return "" if close.all() else _told(index, ~close, wide, expected)


def _told(index: int, wrong: torch.Tensor, actual: torch.Tensor, expected: torch.Tensor) -> str:
    first = tuple(int(i[0]) for i in wrong.nonzero(as_tuple=True))
    where = f"[{', '.join(map(str, first))}]"
    return (
        f"argument {index}: {int(wrong.sum())} of {wrong.numel()} are wrong, such as {where}, "
        f"which is {actual[first].item()} and not {expected[first].item()}"
    )
