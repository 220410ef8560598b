"""Calls that native operators refuse on mps in a release, so that an audit without a Mac sees the same refusals.

PyTorch's own list of expected failures says which dtypes of which OpInfos fail, but not why: wrong values count as
failures, too. So each row here describes one reason why a kernel refuses: the marks that it causes, their dtypes, and
the text that the kernel raises, from PyTorch's sources and from the strings of its macOS binary. A row applies to a
release whose list has the mark or, if no list was read, whose binary has the text. A dtype without a row is not
refused: a refusal that a Mac does not have would hide faults.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ....simulator.device.refusals import Refusal
from ...model.selection import DTYPES
from .. import data as release_data
from . import ReleaseCoverage, from_data

# Stages of FailureKey in which a forward call fails.
_STAGES = ("unimplemented", "forward")
NOTHING = "none"

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "bool")
_HALVES = ("float16", "bfloat16")
_COMPLEX = ("complex64",)

_NO_FUNCTION = "Failed to create function state object for: "
_UNEVEN = (
    "Non-divisible input sizes are not implemented on MPS device yet. For now, you can manually transfer tensor to cpu "
    "in this case. Please refer to [this issue](https://github.com/pytorch/pytorch/issues/96056)"
)


@dataclass(frozen=True)
class Reason:
    """Why kernels refuse.

    Attributes:
        operators: the operators whose overloads refuse ("linalg_inv_ex").
        arguments: the tensors to check, each one separately.
        listed: the OpInfos whose marks have this reason, with their variants ("nn.functional.silucomplex").
        dtypes: those of the mark that are refused for this reason; empty if the dtype does not matter.
        text, dimensions, condition, error: as in Refusal.
        releases: the first and the last release whose binaries have the text, for a reason that needs no mark.
        functions: the functions and modules of which these releases refuse every call.
    """

    operators: tuple[str, ...]
    arguments: tuple[str, ...]
    listed: tuple[str, ...]
    dtypes: tuple[str, ...]
    text: str
    dimensions: int | None = None
    condition: str = ""
    error: str = "RuntimeError"
    releases: tuple[str, str] | None = None
    functions: frozenset[str] = frozenset()

    def is_in(self, release: str) -> bool:
        """Whether a release is one of `releases`; False if there are none."""
        if self.releases is None:
            return False
        first, last = map(release_data.release_order, self.releases)
        return first <= release_data.release_order(release) <= last


def _adaptive_pools(operators: tuple[str, ...], condition: str, text: str) -> Reason:
    listed = ("nn.functional.adaptive_avg_pool2d",)
    error = "NotImplementedError"
    return Reason(operators, ("self",), listed, (), f"Adaptive pool MPS: {text}", condition=condition, error=error)


_AVERAGE_POOLS = ("_adaptive_avg_pool2d", "adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward")
_MAX_POOLS = ("adaptive_max_pool2d", "adaptive_max_pool2d_backward")
_CONVOLUTIONS = tuple(f"nn.functional.conv{n}d" for n in (1, 2, 3))
_TRANSPOSED = tuple(f"nn.functional.conv_transpose{n}d" for n in (1, 2, 3))
_LU = "linalg.lu_factor(): MPS doesn't support complex types."
_FLOATING_ONLY = "only supports floating-point dtypes"

REASONS: tuple[Reason, ...] = (
    Reason(
        ("linear",),
        ("input",),
        ("nn.functional.linear",),
        _INTEGERS,
        "MPS device does not support linear for non-float inputs",
    ),
    Reason(
        ("_mps_convolution",), ("self",), _CONVOLUTIONS, _INTEGERS, "Convolution is supported only for Floating types"
    ),
    Reason(
        ("_mps_convolution_transpose",),
        ("self",),
        _TRANSPOSED,
        _INTEGERS,
        "Convolution is supported only for Floating types",
    ),
    Reason(
        ("_mps_convolution_transpose",),
        ("self",),
        ("nn.functional.conv_transpose3d",),
        _HALVES,
        "ConvTranspose 3D with BF16 or FP16 types is not supported on MPS",
        dimensions=5,
    ),
    Reason(
        ("_mps_convolution",),
        ("self",),
        (),
        (),
        "Conv3D is not supported on MPS",
        dimensions=5,
        releases=("1.13.1", "2.2.2"),
        functions=frozenset({"conv3d", "nn.functional.conv3d", "nn.Conv3d", "nn.LazyConv3d"}),
    ),
    Reason(
        ("_mps_convolution_transpose",),
        ("self",),
        (),
        (),
        "ConvTranspose 3D is not supported on MPS",
        dimensions=5,
        releases=("2.0.1", "2.7.1"),
        functions=frozenset(
            {"conv_transpose3d", "nn.functional.conv_transpose3d", "nn.ConvTranspose3d", "nn.LazyConvTranspose3d"}
        ),
    ),
    Reason(("addr",), ("vec1",), ("addr",), _INTEGERS, "MPS device does not support addr for non-float input"),
    Reason(
        ("linalg_solve_triangular",),
        ("self", "B"),
        ("linalg.solve_triangular",),
        _COMPLEX,
        "linalg.solve.triangular(); Only float is supported!",
    ),
    Reason(
        ("triangular_solve",),
        ("self", "A"),
        ("triangular_solve",),
        _COMPLEX,
        "linalg.solve.triangular(); Only float is supported!",
    ),
    Reason(
        ("linalg_inv_ex",), ("A",), ("linalg.inv_ex",), _COMPLEX, "linalg_inv: not supported for complex types yet!"
    ),
    Reason(("linalg_lu_factor_ex",), ("A",), ("linalg.lu_factor_ex",), _COMPLEX, _LU),
    Reason(("linalg_lu",), ("A",), ("linalg.lu",), _COMPLEX, _LU),
    # Both are written once for all devices, and start with linalg_lu_factor_ex.
    Reason(("_linalg_det",), ("A",), ("linalg.det",), _COMPLEX, _LU),
    Reason(("_linalg_slogdet",), ("A",), ("linalg.slogdet",), _COMPLEX, _LU),
    Reason(
        ("_linalg_solve_ex",), ("A",), ("linalg.solve_ex",), _COMPLEX, "linalg.lu_factor(): MPS only supports floats."
    ),
    Reason(
        ("cholesky_inverse",),
        ("self",),
        ("cholesky_inverse",),
        _COMPLEX,
        "cholesky_inverse: MPS only supports float type!",
    ),
    Reason(("renorm",), ("self",), ("renorm",), _COMPLEX, f"{_NO_FUNCTION}renorm_float2"),
    Reason(("silu",), ("self",), ("nn.functional.silucomplex",), _COMPLEX, f"{_NO_FUNCTION}silu_dense_float2_float2"),
    Reason(
        ("upsample_bicubic2d",),
        ("self",),
        ("nn.functional.interpolatebicubic",),
        ("uint8",),
        f"{_NO_FUNCTION}upsample_bicubic2d_uchar",
    ),
    Reason(
        ("_upsample_bilinear2d_aa",),
        ("self",),
        ("_upsample_bilinear2d_aa",),
        ("uint8",),
        f"_upsample_bilineard2d_aa_out_mps {_FLOATING_ONLY}",  # spelt so
    ),
    Reason(
        ("_upsample_bicubic2d_aa",),
        ("self",),
        ("_upsample_bicubic2d_aa",),
        ("uint8",),
        f"_upsample_bicubic2d_aa_out_mps {_FLOATING_ONLY}",
    ),
    Reason(
        ("scatter_reduce",),
        ("self",),
        ("scatter_reduceprod",),
        ("int64",),
        f"{_NO_FUNCTION}scatter_prod_dense_long_long",
        condition="reduce=prod",
    ),
    _adaptive_pools(
        (*_AVERAGE_POOLS, *_MAX_POOLS),
        "pool grows and shrinks",
        "Input height and width must both be greater than, or equal to, or lesser than output height and width",
    ),
    _adaptive_pools(
        _AVERAGE_POOLS, "pool divides unevenly", f"input sizes must be divisible by output sizes. {_UNEVEN}"
    ),
    _adaptive_pools(
        _AVERAGE_POOLS, "pool multiplies unevenly", f"output sizes must be divisible by input sizes. {_UNEVEN}"
    ),
)


def refusal_of_every_call(names: Iterable[str], release: str) -> str:
    """The error that every call of one of these functions or modules raises in a release; "" if none does."""
    called = set(names)
    return next((reason.text for reason in REASONS if reason.functions & called and reason.is_in(release)), "")


def refuse_as(release: str) -> list[Refusal]:
    """Let the simulated device of this process refuse what a release refuses, or nothing for "none".

    Returns what is refused. Raises MpsmithError for an unknown release, and if this process has not loaded the
    simulated device.
    """
    from ....simulator.device import refusals

    if release == NOTHING:
        return []
    data = release_data.load()
    refused = refusals_of(from_data(data, data.index(release)))
    refusals.refuse(refused)
    return refused


def refuse_as_profile(release: str) -> list[Refusal]:
    """As `refuse_as`, for the release that a coverage profile names, or its closest known ancestor."""
    ancestor = release_data.facts_for(release)
    return refuse_as(ancestor.release if ancestor else NOTHING)


def refusals_of(coverage: ReleaseCoverage, reasons: Sequence[Reason] = REASONS) -> list[Refusal]:
    """The refusals of a release's native overloads, by its list of expected failures."""
    return [refusal for reason in reasons for refusal in _of_reason(reason, coverage)]


def _of_reason(reason: Reason, coverage: ReleaseCoverage) -> Iterator[Refusal]:
    if reason.releases is not None:
        applies, dtypes = reason.is_in(coverage.release), reason.dtypes
    else:
        marked = _marked(coverage, reason.listed)
        dtypes = tuple(dtype for dtype in DTYPES if dtype in marked and dtype in reason.dtypes)
        applies = bool(marked) and (not reason.dtypes or bool(dtypes))
    if not applies:
        return
    for operator in reason.operators:
        for overload in coverage.by_operator.get(operator, ()):
            if overload.dispatch.has_kernel:
                for argument in reason.arguments:
                    yield Refusal(
                        overload.name, argument, reason.text, dtypes, reason.dimensions, reason.condition, reason.error
                    )


def _marked(coverage: ReleaseCoverage, listed: Iterable[str]) -> set[str]:
    """The dtypes for which a release expects the forward of any of these OpInfos to fail."""
    wanted = set(listed)
    return {
        dtype
        for key, dtypes in coverage.failures.items()
        if key.opinfo + key.variant in wanted and key.stage in _STAGES
        for dtype in dtypes.split(",")
    }
