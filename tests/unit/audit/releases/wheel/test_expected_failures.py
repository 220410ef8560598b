from pathlib import Path

import pytest

from mpsmith.audit.model.selection import DTYPES
from mpsmith.audit.releases.data import FailureKey, load
from mpsmith.audit.releases.surface import native_functions
from mpsmith.audit.releases.wheel.expected_failures import ExpectedFailure, read_expected_failures
from mpsmith.audit.releases.wheel.opinfo_declarations import MAIN, OpInfoDeclaration, read_opinfos
from mpsmith.errors import MpsmithError

COMMON_MPS = """
import torch
if torch.backends.mps.is_available():
    def mps_ops_modifier(ops, device_type="mps", xfail_exclusion=None, sparse=False):
        if xfail_exclusion is None:
            xfail_exclusion = []
        UNSUPPORTED_COMPLEX_OPS = {"addr"}
        UNIMPLEMENTED_XFAILLIST = {
            "mode": None,
            "glu": [torch.int8, torch.half],
            "dot": [torch.int64] if MACOS_VERSION < 14.0 else [],
        }
        SKIPLIST = {"conv3d": None}
        BEFORE_15 = {"sort": [torch.bool]}

        def addDecorator(op, d):
            op.decorators = op.decorators + (d,)

        for op in ops:
            key = op.name + op.variant_test_name
            addDecorator(op, DecorateInfo(unittest.expectedFailure, dtypes=[torch.double, torch.cdouble]))
            if sparse:
                addDecorator(op, DecorateInfo(unittest.skip("sparse"), dtypes=[torch.complex128]))
            if key in SKIPLIST:
                addDecorator(op, DecorateInfo(unittest.skip("Skipped!"), dtypes=SKIPLIST[key]))
            for xfaillist in [UNIMPLEMENTED_XFAILLIST]:
                if key in xfaillist and key not in xfail_exclusion:
                    addDecorator(op, DecorateInfo(unittest.expectedFailure, dtypes=xfaillist[key]))
            if key in BEFORE_15 and (MACOS_VERSION < 15.0):
                addDecorator(op, DecorateInfo(unittest.expectedFailure, dtypes=BEFORE_15[key]))
            if key in UNSUPPORTED_COMPLEX_OPS:
                addDecorator(op, DecorateInfo(unittest.expectedFailure, dtypes=[torch.complex32, torch.complex64]))
        return ops

    def mps_ops_grad_modifier(ops):
        XFAILLIST_GRAD = {"unique": None}
        for op in ops:
            key = op.name + op.variant_test_name
            if key in XFAILLIST_GRAD:
                addDecorator(op, DecorateInfo(unittest.expectedFailure, dtypes=XFAILLIST_GRAD[key]))
        return ops
else:
    def mps_ops_modifier(ops):
        return ops
"""

OPINFOS = """
op_db = [
    OpInfo("mode", dtypes=floating_types_and(torch.half, torch.bool),
           skips=(
               # NotImplementedError: The operator 'aten::mode' is not currently implemented for the MPS device
               DecorateInfo(unittest.expectedFailure, "TestCommon", "test_out", device_type="mps"),
               DecorateInfo(unittest.expectedFailure, "TestCommon", device_type="mps", dtypes=(torch.float32,)),
               DecorateInfo(unittest.expectedFailure, "TestCommon", device_type="cuda"),
           )),
    OpInfo("nn.functional.glu", aten_name="glu", dtypes=all_types(), dtypesIfMPS=floating_types()),
    UnaryUfuncInfo("abs", variant_test_name="fast", dtypes=custom_types(torch.int8) | unknown()),
    ForeachFuncInfo("exp"),
    OpInfo("addr", dtypes=complex_types()),
    ElementwiseUnaryPythonRefInfo("_refs.abs"),
    DecorateInfo("nothing"),
]
"""


@pytest.fixture
def opinfos() -> list[OpInfoDeclaration]:
    return read_opinfos({MAIN: OPINFOS.encode()})


def test_opinfos_are_read_from_their_source(opinfos: list[OpInfoDeclaration]) -> None:
    assert [(opinfo.name, opinfo.variant, opinfo.operator) for opinfo in opinfos] == [
        ("mode", "", "mode"),
        ("nn.functional.glu", "", "glu"),
        ("abs", "fast", "abs"),
        ("_foreach_exp", "", "_foreach_exp"),
        ("addr", "", "addr"),
    ]
    assert opinfos[0].dtypes == {"float32", "float64", "float16", "bool"}
    assert opinfos[1].dtypes == {"float32", "float64"}
    assert opinfos[2].dtypes is None
    assert opinfos[2].test == "absfast"


def test_own_marks_take_the_comment_above_them(opinfos: list[OpInfoDeclaration]) -> None:
    first, second = opinfos[0].marks
    assert (first.where, first.dtypes, first.operators) == ("TestCommon.test_out", None, ("aten::mode",))
    assert (second.where, second.dtypes, second.operators) == ("TestCommon", ("float32",), ("aten::mode",))
    assert first.unimplemented
    assert not first.skipped


def marks(macos: float, opinfos: list[OpInfoDeclaration]) -> set[ExpectedFailure]:
    failures = read_expected_failures(COMMON_MPS, opinfos, macos)
    assert failures.problems == ()
    return set(failures.marks)


def test_lists_are_evaluated(opinfos: list[OpInfoDeclaration]) -> None:
    unimplemented = "UNIMPLEMENTED_XFAILLIST"
    assert marks(15.0, opinfos) == {
        ExpectedFailure("mode", "mode", "forward", False, unimplemented, ("float32", "float16", "bool")),
        ExpectedFailure("glu", "glu", "forward", False, unimplemented, ("float16", "int8")),
        ExpectedFailure("conv3d", "conv3d", "forward", True, "SKIPLIST", DTYPES),
        ExpectedFailure("addr", "addr", "forward", False, "UNSUPPORTED_COMPLEX_OPS", ("complex64",)),
        ExpectedFailure("unique", "unique", "backward", False, "XFAILLIST_GRAD", DTYPES),
    }


def test_lists_are_kept_as_they_are_written(opinfos: list[OpInfoDeclaration]) -> None:
    lists = read_expected_failures(COMMON_MPS, opinfos, 15.0).lists
    assert lists["forward", "UNIMPLEMENTED_XFAILLIST"] == {"mode": None, "glu": ("int8", "float16"), "dot": ()}
    assert lists["backward", "XFAILLIST_GRAD"] == {"unique": None}


def test_lists_depend_on_the_version_of_macos(opinfos: list[OpInfoDeclaration]) -> None:
    added = marks(13.3, opinfos) - marks(15.0, opinfos)
    assert {(mark.test, mark.dtypes) for mark in added} == {("dot", ("int64",)), ("sort", ("bool",))}


def test_expressions_that_cannot_be_evaluated_are_reported(opinfos: list[OpInfoDeclaration]) -> None:
    text = COMMON_MPS.replace('SKIPLIST = {"conv3d": None}', "SKIPLIST = load_list()")
    failures = read_expected_failures(text, opinfos)
    assert failures.problems
    assert failures.problems[0].startswith("common_mps.py, line 13: load_list()")


def test_rejects_text_that_is_not_python(opinfos: list[OpInfoDeclaration]) -> None:
    with pytest.raises(MpsmithError, match=r"common_mps\.py is not valid Python"):
        read_expected_failures("def f(:", opinfos)
    with pytest.raises(MpsmithError, match=r"common_methods_invocations\.py is not valid Python"):
        read_opinfos({"common_methods_invocations.py": b"\0"})


def test_the_sources_agree_with_the_imported_opinfos() -> None:
    site_packages = native_functions.installed_path().parents[4]
    declared = {opinfo.test: opinfo for opinfo in read_opinfos({MAIN: Path(site_packages, MAIN).read_bytes()})}
    from torch.testing._internal.common_methods_invocations import op_db

    compared = 0
    for opinfo in op_db:
        source = declared.get(opinfo.name + opinfo.variant_test_name)
        if source is not None and source.dtypes is not None:
            tested = getattr(opinfo, "dtypesIfMPS", None) or opinfo.dtypes
            names = {str(dtype).removeprefix("torch.") for dtype in tested}
            assert source.dtypes & set(DTYPES) == names & set(DTYPES), opinfo.name
            compared += 1
    assert compared > 400


def test_committed_failures_of_2_15() -> None:
    data = load()
    position = data.index("2.15.0")
    failures = {key: states[position] for key, states in data.expected_failures.items()}
    assert failures[FailureKey("mode", "", "opinfo", "mode")] == "all"
    assert "float32" in failures[FailureKey("linalg.eig", "", "unimplemented", "linalg_eig")]
