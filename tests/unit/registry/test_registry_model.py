from typing import get_args

import pytest
from pydantic import ValidationError

from mpsmith.audit.model.verdicts import CaseVerdict, OverloadVerdict
from mpsmith.audit.releases.surface import Dispatch as SurfaceDispatch
from mpsmith.registry.folder import file_name
from mpsmith.registry.model import (
    Dispatch,
    DtypeVerdict,
    Entry,
    Evidence,
    Measured,
    Status,
    Verdict,
    data_of,
    in_dtype_order,
)

KERNEL_EVIDENCE = Evidence(torch="2.13.0", source="0123456789ab", checks=["numerics", "opcheck"])


def entry(**fields: object) -> Entry:
    return Entry.model_validate({"operator": "aten::mode", **fields})


def measured(verdict: str, **fields: object) -> dict[str, object]:
    return {"torch": "2.13.0", "verdict": verdict, **fields}


def test_the_registry_has_the_verdicts_of_the_auditor() -> None:
    assert set(get_args(Dispatch)) == {dispatch.value for dispatch in SurfaceDispatch}
    assert set(get_args(Verdict)) == {verdict.value for verdict in OverloadVerdict}
    assert set(get_args(DtypeVerdict)) == {verdict.value for verdict in CaseVerdict}


@pytest.mark.parametrize(
    ("verdict", "status"),
    [
        ("native", Status.native),
        ("composite", Status.composite),
        ("fallback", Status.falls_back),
        ("missing", Status.missing),
        ("wrong", Status.wrong),
        ("dtype gap", Status.dtype_gap),
        ("crash", Status.wrong),
        ("timeout", Status.wrong),
        ("unreachable", Status.not_applicable),
        ("reference failed", None),
    ],
)
def test_an_entry_without_a_status_follows_its_measurement(verdict: str, status: Status | None) -> None:
    assert entry(measured={"simulated": measured(verdict)}).current_status is status


def test_a_status_set_by_people_outranks_the_measurement() -> None:
    judged = entry(status="upstreamed", measured={"mps": measured("missing")})
    assert judged.current_status is Status.upstreamed


def test_an_operator_that_was_not_measured_has_no_status() -> None:
    assert entry(notes="asked for often").current_status is None


def test_a_real_measurement_outranks_a_simulated_one_of_a_newer_release() -> None:
    both = {"simulated": measured("native", profile="2.15.0"), "mps": measured("wrong")}
    assert entry(measured=both).ranking_device == "mps"
    assert entry(measured=both).current_status is Status.wrong


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"status": "not applicable"}, "needs a reason"),
        ({"status": "implemented"}, "needs a kernel"),
        ({"status": "verified", "kernel": "mode"}, "needs evidence of a real device"),
        (
            {"status": "verified", "kernel": "mode", "evidence": {"simulated": KERNEL_EVIDENCE}},
            "needs evidence of a real device",
        ),
        ({"issue": "#77"}, "issue"),
        ({"pull_request": "77 and 78"}, "pull_request"),
        ({"kernel": "kernels/mode.py"}, "kernel"),
        ({"owner": "  "}, "owner"),
        ({"operator": "mode"}, "operator"),
        ({"operator": "aten::mode.values"}, "operator"),
        ({"measured": {"cuda": measured("native")}}, "cuda"),
        ({"measured": {"mps": measured("fine")}}, "verdict"),
        ({"measured": {"mps": {"verdict": "native"}}}, "torch"),
        ({"measured": {"mps": measured("native", torch="new")}}, "torch"),
        ({"measured": {"mps": measured("native", overloads={"aten::sort": "native"})}}, "an overload of aten::mode"),
        ({"measured": {"mps": measured("native", overloads={"aten::mode": "fast"})}}, "aten::mode"),
        ({"measured": {"mps": measured("native", dtypes={"native": ["int8"]})}}, "dtypes"),
        ({"measured": {"mps": measured("native", dtypes={"passed": ["torch.int8"]})}}, "dtypes"),
        ({"evidence": {"mps": {"torch": "2.13.0", "source": "0" * 12, "checks": []}}}, "checks"),
        ({"evidence": {"mps": {"torch": "2.13.0", "source": "latest", "checks": ["numerics"]}}}, "source"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_rejects_bad_values(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        entry(**fields)


def test_verified_needs_kernel_and_evidence() -> None:
    judged = entry(status="verified", kernel="mode", evidence={"mps": KERNEL_EVIDENCE})
    assert judged.current_status is Status.verified


def test_plain_data_has_no_absent_and_no_empty_fields() -> None:
    assert data_of(Measured(torch="2.13.0", verdict="missing")) == {"torch": "2.13.0", "verdict": "missing"}


def test_dtypes_have_one_order() -> None:
    assert in_dtype_order(["bool", "int8", "float16", "float8_e5m2", "float32", "bool", "complex64"]) == [
        "float32",
        "float16",
        "complex64",
        "int8",
        "bool",
        "float8_e5m2",
    ]


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("aten::mode", "m.yaml"),
        ("aten::_fused_adagrad_", "f.yaml"),
        ("aten::__and__", "a.yaml"),
        ("aten::_foreach_add", "foreach.yaml"),
        ("aten::linalg_eig", "linalg.yaml"),
        ("aten::foreach", "foreach.yaml"),
        ("aten::foreachish", "f.yaml"),
        ("torchvision::nms", "torchvision.yaml"),
    ],
)
def test_the_name_decides_the_file(operator: str, expected: str) -> None:
    assert file_name(operator) == expected
