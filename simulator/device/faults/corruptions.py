"""All corruptions by their words: what a faulty kernel does to results, arguments, memory or its process."""

from __future__ import annotations

from . import misread_arguments, side_effects, wrong_results  # each registers its corruptions
from .corruption import CORRUPTIONS, Corruption

__all__ = ["CORRUPTIONS", "Corruption", "misread_arguments", "side_effects", "wrong_results"]
