"""Variants of the code of a kernel."""

from __future__ import annotations

from dataclasses import dataclass

from .accuracy import Perturbation


@dataclass(frozen=True)
class Variant:
    """A variant of the code of a kernel.

    `perturbation`: the results of its mathematics are moved within the bounds that Apple gives. `checked`: it tells the
    scheduler of each of its loads, stores and atomic operations.
    """

    perturbation: Perturbation | None = None
    checked: bool = False


PLAIN = Variant()
