"""The results of findings with the kernels of a release, as plain data. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.verdicts import CaseVerdict, Grade, UlpSensitivity


@dataclass(frozen=True)
class FurthestElement:
    """The element of a result with the largest difference from the CPU's.

    Attributes:
        kind: "outputs" or "gradients".
        number: the index of the output or gradient.
        index: the element's index in the flattened tensor.
        given, expected: the values of the kernel and the CPU.
        given_bits, expected_bits: the bits of both values, "0x7fc00000".
    """

    kind: str
    number: int
    index: int
    given: str
    expected: str
    given_bits: str
    expected_bits: str


@dataclass(frozen=True)
class FindingResult:
    """The result of one finding with the kernels of one release.

    Attributes:
        name: the name of the finding.
        verdict: the judge's verdict on its call.
        grade: *shipped kernel* if nothing else computed.
        message: what differs, or the error.
        kernels: the kernels that were launched.
        stood_in: native calls that kept the stand-in, with the reason.
        inputs: a description of the call's inputs.
        place: the element with the largest difference, if values are wrong.
        ulp_sensitivity: whether that depends on the last bits.
    """

    name: str
    verdict: CaseVerdict
    grade: Grade
    message: str
    kernels: tuple[str, ...]
    stood_in: tuple[str, ...]
    inputs: str
    place: FurthestElement | None = None
    ulp_sensitivity: UlpSensitivity | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether shipped kernels alone gave a wrong result or crashed."""
        return self.grade is Grade.SHIPPED_KERNEL and self.verdict in (CaseVerdict.WRONG, CaseVerdict.CRASH)

    @property
    def is_right(self) -> bool:
        """Whether shipped kernels alone gave the right result."""
        return self.grade is Grade.SHIPPED_KERNEL and self.verdict is CaseVerdict.PASSED
