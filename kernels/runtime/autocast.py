"""Keeps autocast out of kernels that are composites of torch's operators: it would round their operands."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def without_autocast(kernel: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The kernel with autocast disabled inside it."""

    @functools.wraps(kernel)
    def called(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with torch._C._DisableAutocast():
            return kernel(*args, **kwargs)

    return called
