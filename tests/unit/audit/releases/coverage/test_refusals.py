"""Which refusals of a Mac a release's list of expected failures speaks of."""

from __future__ import annotations

import pytest

from mpsmith.audit.releases import data as release_data
from mpsmith.audit.releases.coverage import OverloadCoverage, ReleaseCoverage, from_data
from mpsmith.audit.releases.coverage.refusals import Reason, refusals_of
from mpsmith.audit.releases.data import FailureKey
from mpsmith.audit.releases.surface.overloads import Dispatch
from mpsmith.simulator.device.refusals import Refusal

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "bool")
REASON = Reason(("f",), ("self", "other"), ("nn.ftwo",), ("complex64", "int8"), "no", dimensions=3, condition="a=b")


def release(failures: dict[FailureKey, str]) -> ReleaseCoverage:
    overloads = tuple(
        OverloadCoverage(name, dispatch, dispatch, "kernel", False, False)
        for name, dispatch in {
            **{"f": Dispatch.NATIVE, "f_": Dispatch.STRUCTURED_DELEGATE, "f.out": Dispatch.MISSING},
            "g": Dispatch.NATIVE,
        }.items()
    )
    return ReleaseCoverage("1.0.0", "made by hand", overloads, None, {}, failures, frozenset())


@pytest.mark.parametrize(
    ("opinfo", "variant", "stage", "marked", "refused"),
    [
        ("nn.f", "two", "unimplemented", "int8,bool", ("int8",)),
        ("nn.f", "two", "forward", "int8,complex64", ("complex64", "int8")),
        ("nn.f", "two", "backward", "int8", None),
        ("nn.f", "two", "opinfo", "all", None),
        ("nn.f", "two", "forward", "float32", None),
        ("nn.f", "", "forward", "int8", None),
        ("f", "", "forward", "int8", None),
    ],
)
def test_a_mark_becomes_a_refusal_of_every_kernel_of_its_reason(
    opinfo: str, variant: str, stage: str, marked: str, refused: tuple[str, ...] | None
) -> None:
    refusals = refusals_of(release({FailureKey(opinfo, variant, stage, "f"): marked}), [REASON])
    if refused is None:
        assert refusals == []
        return
    assert refusals == [
        Refusal(overload, argument, "no", refused, 3, "a=b", "RuntimeError")
        for overload in ("f", "f_")
        for argument in ("self", "other")
    ]


def test_a_reason_without_dtypes_holds_for_all_of_them_once_it_is_listed() -> None:
    sizes = Reason(("g",), ("self",), ("pool",), (), "sizes", error="NotImplementedError")
    assert refusals_of(release({}), [sizes]) == []
    marked = release({FailureKey("pool", "", "unimplemented", "g"): "float32"})
    assert refusals_of(marked, [sizes]) == [Refusal("g", "self", "sizes", error="NotImplementedError")]


def test_refusals_of_2_13() -> None:
    data = release_data.load()
    refusals = refusals_of(from_data(data, data.index("2.13.0")))
    by_overload = {(refusal.overload, refusal.argument, refusal.text[:20]): refusal.dtypes for refusal in refusals}
    assert by_overload["linear", "input", "MPS device does not "] == ("int8", "int16", "int32", "int64", "uint8")
    assert by_overload["_mps_convolution", "self", "Convolution is suppo"] == ("int64",)
    assert by_overload["addr.out", "vec1", "MPS device does not "] == INTEGERS
    assert by_overload["_linalg_det.result", "A", "linalg.lu_factor(): "] == ("complex64",)
    assert by_overload["scatter_reduce_.two", "self", "Failed to create fun"] == ("int64",)
    assert by_overload["_adaptive_avg_pool2d", "self", "Adaptive pool MPS: i"] == ()
    assert len(refusals) == 56
    assert {refusal.overload.split(".")[0].rstrip("_") for refusal in refusals} == {
        *("linear", "_mps_convolution", "_mps_convolution_transpose", "addr", "linalg_solve_triangular"),
        *("triangular_solve", "linalg_inv_ex", "linalg_lu_factor_ex", "linalg_lu", "_linalg_det", "_linalg_slogdet"),
        *("_linalg_solve_ex", "cholesky_inverse", "renorm", "silu", "upsample_bicubic2d", "scatter_reduce"),
        *("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "_adaptive_avg_pool2d", "adaptive_avg_pool2d"),
        *("_adaptive_avg_pool2d_backward", "adaptive_max_pool2d", "adaptive_max_pool2d_backward"),
    }


def test_later_releases_refuse_less() -> None:
    data = release_data.load()
    overloads = {refusal.overload for refusal in refusals_of(from_data(data, data.index("2.15.0")))}
    assert "linalg_inv_ex" in overloads
    assert overloads.isdisjoint({"_linalg_det", "silu", "linalg_lu", "triangular_solve"})


@pytest.mark.parametrize(
    ("torch", "refused"),
    [
        ("1.12.1", set()),
        ("1.13.1", {"_mps_convolution"}),
        ("2.2.2", {"_mps_convolution", "_mps_convolution_transpose"}),
        ("2.3.1", {"_mps_convolution_transpose"}),
        ("2.7.1", {"_mps_convolution_transpose"}),
    ],
)
def test_releases_whose_binary_has_the_text_refuse_volumes(torch: str, refused: set[str]) -> None:
    data = release_data.load()
    refusals = refusals_of(from_data(data, data.index(torch)))
    assert {r.overload for r in refusals if r.dimensions == 5 and not r.dtypes} == refused
