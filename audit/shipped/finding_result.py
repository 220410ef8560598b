"""What a release's kernels gave for findings, as plain data. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.verdicts import CaseVerdict, Grade, UlpSensitivity


@dataclass(frozen=True)
class FurthestElement:
    """The element of a result that is furthest from the CPU's.

    Attributes:
        kind: "outputs" or "gradients".
        number: which of these.
        index: of the element in the flattened tensor.
        given, expected: what the kernel and the CPU give there.
        given_bits, expected_bits: the same, "0x7fc00000".
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
    """What came of one finding with the kernels of one release.

    Attributes:
        name: of the finding.
        verdict: the judge's on its call.
        grade: *shipped kernel* where nothing else computed.
        message: what differs, or what was raised.
        kernels: those that were launched.
        stood_in: native calls that the stand-in answered, with the reason.
        inputs: the call's, in words.
        place: the element that is furthest off, where values are wrong.
        ulp_sensitivity: whether that hangs on last bits.
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
        """Whether shipped kernels alone gave a wrong result, or did what a GPU would not forgive."""
        return self.grade is Grade.SHIPPED_KERNEL and self.verdict in (CaseVerdict.WRONG, CaseVerdict.CRASH)

    @property
    def is_right(self) -> bool:
        """Whether shipped kernels alone gave the right result."""
        return self.grade is Grade.SHIPPED_KERNEL and self.verdict is CaseVerdict.PASSED
