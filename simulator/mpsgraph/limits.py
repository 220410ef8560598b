"""The limits of MPSGraph by version of macOS (limits.yaml), and their installation in the stand-in."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

_FILE = Path(__file__).with_name("limits.yaml")
_NEVER = 1 << 30
Measure = Literal[
    "Bool",
    "NaN",
    "aligned corners of one element",
    "axis before one element",
    "axis from the end",
    "batch",
    "batch of a product and a sum",
    "channels",
    "elements",
    "inner dimension of a tile of 16 or more",
    "odd length",
    "product of two strides",
    "rank",
    "use",
    "windows that begin past the end",
]
Version = Annotated[str, Field(pattern=r"^\d+\.\d+$")]


class Limit(BaseModel):
    """A rule of limits.yaml.

    Attributes:
        operations: of the stand-in's graphs; "*" for all.
        measure, above: the quantity that is compared, and the last value that gives a right result.
        ends: the message with which the process ends above the limit.
        gives: the wrong result above the limit, for a rule without `ends`.
        first, before: the versions of macOS that it applies to.
        reports: issues of pytorch/pytorch that describe it.
        header: PyTorch's header that declares a selector for development kits without it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    operations: Annotated[tuple[str, ...], Field(min_length=1)]
    measure: Measure
    above: int
    ends: str = ""
    gives: str = ""
    first: Version = Field(alias="from")
    before: Version | None = None
    reports: tuple[int, ...] = ()
    header: str = ""

    @model_validator(mode="after")
    def _has_one_effect(self) -> Limit:
        if bool(self.ends) == bool(self.gives):
            raise ValueError("a limit either ends the process or gives another result")
        if bool(self.reports) == bool(self.header):
            raise ValueError("a limit names the reports, or the header, that it is known from")
        return self

    @property
    def text(self) -> str:
        """The message, with the reports; empty if the process continues."""
        known_from = ", ".join(f"#{number}" for number in self.reports) or self.header
        since = f"macOS {self.first}" + (f" until {self.before}" if self.before else " and later")
        return f"{self.ends} ({since}: pytorch/pytorch {known_from})" if self.ends else ""


@cache
def limits() -> Mapping[str, Limit]:
    """All rules by name. Raises ValidationError for a file that does not fit them."""
    data = yaml.safe_load(_FILE.read_text("utf-8"))
    return {name: Limit.model_validate(fields) for name, fields in data.items()}


def rows() -> Iterator[tuple[str, str, int, int, int, str]]:
    """The arguments of `mpsgraph_simulator_add_limit`, for each operation that a rule names."""
    for limit in limits().values():
        until = _number(limit.before) if limit.before else _NEVER
        for operation in limit.operations:
            yield operation, limit.measure, limit.above, _number(limit.first), until, limit.text


def install(library: ctypes.CDLL) -> None:
    """Add all rules to the stand-in. Those for the simulated version of macOS apply when an operation runs."""
    for operation, measure, *numbers, text in rows():
        library.mpsgraph_simulator_add_limit(
            operation.encode(), measure.encode(), *map(ctypes.c_int64, numbers), text.encode()
        )


def _number(version: str) -> int:
    major, minor = version.split(".")
    return int(major) * 100 + int(minor)
