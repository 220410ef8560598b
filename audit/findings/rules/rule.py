"""The form of a rule that explains a non-pass.

A rule is narrow: it names verdicts, the words of the message and, wherever a fault is explained, the operators. A
difference in values it explains by a prediction: the defect's result for these inputs, or the size of rounding errors.
Other non-passes of the same operator stay unexplained.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from ....registry.known_case import Part
from ...model.verdicts import CaseVerdict, Grade

HoldsOn = Literal["simulated", "real", "both"]


class Example(Part):
    """A case that the rule explains.

    Attributes:
        case: "source:operator:dtype" of its group.
        verdict, stage, message, fallbacks: of its outcome; the verdict is by default the first of the rule's.
        inputs: the case and its inputs, as a report describes them.
        kernels: the shipped kernels that it launched.
        fits: the predictions that it fits.
        grade: what ran, where the rule asks for it.
        unlike: near misses, which the rule must not explain: each says what is otherwise than in the example.
    """

    case: Annotated[str, Field(pattern=r"^[^:]+:[^:]+:\w+$")]
    verdict: CaseVerdict | None = None
    stage: str = "forward"
    message: str = ""
    fallbacks: tuple[str, ...] = ()
    inputs: str = "(x)"
    kernels: tuple[str, ...] = ()
    fits: dict[str, float] = Field(default_factory=dict)
    grade: Grade = Grade.DISPATCH_ONLY
    unlike: tuple[dict[str, Any], ...] = ()

    @property
    def near_misses(self) -> list[Example]:
        """The example with each of the changes."""
        return [Example.model_validate(self.model_dump() | change | {"unlike": ()}) for change in self.unlike]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class ExplainingRule:
    """The conditions under which `reason` explains a case. An empty condition matches every case.

    Attributes:
        name, reason: for people; the reason says what happens and what causes it.
        verdicts: the verdicts that it explains.
        message: a regular expression that is found in the case's message.
        operators: shell patterns of the entry ("nn.functional.linear", "mode.values").
        sources, dtypes, stages: the case has one of these.
        inputs: a regular expression that is found in the description of the case and its inputs.
        arguments: a regular expression that is found in the inputs, or in the arguments of the inner call at fault.
        prediction: a model of the defect (audit/judging/predictions): it gives every element that differs, or several
            models of rules that match give them together.
        at_most: the largest error in units of the tolerance, of all results; nothing but values differs, and all are
            finite.
        without_kernel: every operator that the device named is one for which the surface has no kernel for mps.
        holds_on: the kind of mps device that the rule is about.
        unknown_on_mac: what a Mac does there is not known: a case of a simulated device is evidence about no overload.
        upstream: the public issue about it ("pytorch/pytorch#137720"), or "".
        shipped: shell patterns of torch releases: the case launched shipped kernels of one of them.
        kernels: shell patterns of kernels: the case launched one of them.
        imported: a package: the run was asked to import it.
        host_code: PyTorch's own host code computed the case, under the simulated device.
        never_stale: not reported as stale where a run has no such case: it only repeats the judge's words.
        examples: cases that it explains, for its test.
    """

    name: str
    reason: Annotated[str, Field(min_length=40)]
    verdicts: Annotated[tuple[CaseVerdict, ...], Field(min_length=1)]
    message: str = ""
    operators: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    inputs: str = ""
    arguments: str = ""
    prediction: str = ""
    at_most: float | None = None
    without_kernel: bool = False
    holds_on: HoldsOn = "both"
    unknown_on_mac: bool = False
    upstream: str = ""
    shipped: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    imported: str = ""
    host_code: bool = False
    never_stale: bool = False
    examples: tuple[Example, ...] = field(default=(), compare=False, repr=False)
