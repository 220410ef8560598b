"""Which outcomes say the same but for numbers: cases of one group that do have one cause."""

from __future__ import annotations

import re

from ..model.verdicts import Outcome

NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def alike(outcome: Outcome) -> tuple[str, str]:
    """The same for outcomes that differ in numbers alone: the stage, and the message with # for each number."""
    return outcome.stage, NUMBER.sub("#", outcome.message)
