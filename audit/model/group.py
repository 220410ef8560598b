"""The key of a group of cases: what is generated, executed and recorded together. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

# Under torch.compile, with sizes that are numbers in the generated code, or that are symbols.
COMPILED, DYNAMIC = "compiled", "dynamic"
COMPILED_MODES = (COMPILED, DYNAMIC)


@dataclass(frozen=True)
class GroupKey:
    """All cases of one operator entry and dtype in one mode; generated together, identified by position.

    `operator` is the name its source gives ("nn.functional.softshrink"), `variant` the source's variant of it.
    `mode` is "fallback" (PYTORCH_ENABLE_MPS_FALLBACK=1) or "strict", or one of COMPILED_MODES.
    """

    source: str
    operator: str
    variant: str
    dtype: str
    mode: str

    @property
    def label(self) -> str:
        """For people: source:operator[.variant]:dtype."""
        name = f"{self.operator}.{self.variant}" if self.variant else self.operator
        return f"{self.source}:{name}:{self.dtype}"

    def label_of(self, position: int) -> str:
        """What a case of the group is called, in every run with the same settings: its position and mode added."""
        return f"{self.label}:{position}" + ("" if self.mode == "fallback" else f":{self.mode}")
