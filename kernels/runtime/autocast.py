"""Kernels that are composed of torch's operators, kept from autocast: it would round what these are given."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def without_autocast(kernel: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The kernel, in which products take the dtypes that they are given, wherever it is called."""

    @functools.wraps(kernel)
    def called(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with torch._C._DisableAutocast():
            return kernel(*args, **kwargs)

    return called
