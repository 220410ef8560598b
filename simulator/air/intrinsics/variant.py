"""Variants of the code of a kernel."""

from __future__ import annotations

from dataclasses import dataclass

from .accuracy import Perturbation


@dataclass(frozen=True)
class Variant:
    """A variant of the code of a kernel.

    `perturbation`: moves the results of mathematical functions within Apple's bounds. `checked`: the code reports each
    load, store and atomic operation to the scheduler.
    """

    perturbation: Perturbation | None = None
    checked: bool = False


PLAIN = Variant()
