"""Imports torchvision without its operators, for timm and transformers, which import it but do not need them.

Its wheel for Linux is built for CUDA. With a torch without CUDA, its import fails at each operator that it registers
a fake kernel for.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
from typing import Any

import torch

_LACKING = re.compile(r"operator torchvision::(\w+) does not exist")

_kept: list[Any] = []  # a library takes its operators with it when it goes


def import_torchvision() -> None:
    """Import torchvision if it is installed; declare the operators that its import lacks."""
    with contextlib.suppress(ModuleNotFoundError):
        while operator := _lacking_operator():
            library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
            library.define(f"{operator}() -> Tensor")  # type: ignore[no-untyped-call]
            _kept.append(library)


def _lacking_operator() -> str:
    """Import torchvision; return the operator that the import lacks, or "" if it succeeded."""
    try:
        importlib.import_module("torchvision")
    except RuntimeError as error:
        lacking = _LACKING.search(str(error))
        if lacking is None:
            raise
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        return lacking[1]
    return ""
