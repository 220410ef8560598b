"""A case source whose third case of five crashes inside an extension. Imported by the workers through --import."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch

from mpsmith.audit.model.case import Case, CaseSource
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import Samples
from mpsmith.simulator.objc.loading import load_extension


def harmless(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def crashing(x: torch.Tensor) -> torch.Tensor:
    if x.device.type == "mps":
        extension = load_extension(Path(os.environ["CRASHING_EXTENSION"]))
        assert extension is not None
        extension.crash()
    return x + 1


class CrashingExtensionSource(CaseSource):
    name = "crashing extension"

    def groups(self) -> Iterable[GroupKey]:
        yield GroupKey(self.name, "crash", "", "float32", "fallback")

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        for position in range(5):
            yield Case(crashing if position == 2 else harmless, (torch.arange(4.0),))


mpsmith_case_sources = [CrashingExtensionSource()]
