"""The answer about an operator: names, parts of composites, dtypes, notes and next steps."""

from pathlib import Path

import pytest
import torch

from mpsmith.audit.answers import compositions, measured
from mpsmith.audit.answers.answer import answer, known_names
from mpsmith.audit.answers.compositions import Composition
from mpsmith.audit.answers.measured import MeasuredCalls, MeasuredNames
from mpsmith.audit.answers.measuring import has_empty_tensor
from mpsmith.audit.answers.sentences import as_data, as_text, dtypes, headline, reason, steps
from mpsmith.audit.answers.support import ReleaseSupport, Support
from mpsmith.audit.model.verdicts import CaseVerdict, Grade
from mpsmith.audit.releases import data as release_data
from mpsmith.audit.releases.data import OverloadHistory, ReleaseData, ReleaseFacts
from mpsmith.audit.releases.surface.rare_overloads import is_rare
from mpsmith.errors import MpsmithError


@pytest.mark.parametrize(
    ("written", "operator", "shown"),
    [
        ("mode", "aten::mode", "mode"),
        ("x.mode()", "aten::mode", "mode"),
        ("net.layer.x.mode(dim=1)", "aten::mode", "mode"),
        ("aten::mode", "aten::mode", "mode"),
        ("x.add_(1)", "aten::add", "add"),
        ("torch.linalg.svd(a)", "aten::linalg_svd", "linalg.svd"),
        ("linalg_svd", "aten::linalg_svd", "linalg.svd"),
        ("F.softshrink", "aten::softshrink", "nn.functional.softshrink"),
        ("nn.MultiheadAttention", "", "nn.MultiheadAttention"),
        ("multiheadattention", "", "nn.MultiheadAttention"),
        ("mode.values", "aten::mode", "mode.values"),
        ("torch.ops.aten.mode.default", "aten::mode", "mode"),
        ("x[a, b] = v", "aten::index_put", "index_put"),
        ("x.to(torch.float64)", "", "double"),
        ("torch.nn.modules.activation.ReLU", "", "nn.ReLU"),
        ("nn.LazyBatchNorm2d(8)", "", "nn.BatchNorm2d"),
        ("nn.PixelShuffle", "aten::pixel_shuffle", "nn.functional.pixel_shuffle"),
        ("nn.Dropout(0.5)", "aten::dropout", "nn.functional.dropout"),
        ("nn.Unfold", "aten::im2col", "nn.functional.unfold"),
        ("x.unfold(0, 2, 1)", "aten::unfold", "unfold"),
        ("F.fold", "aten::col2im", "col2im"),
        ("nn.Upsample", "", "nn.functional.interpolate"),
        ("F.lp_pool2d", "", "nn.LPPool2d"),
        ("torch.sparse.mm(a, b)", "aten::_sparse_mm", "_sparse_mm"),
        ("x.cpu()", "aten::to", "to"),
        ("x @ y", "aten::matmul", "matmul"),
        ("a //= b", "aten::floor_divide", "floor_divide"),
        ("==", "aten::eq", "eq"),
        ("~x", "aten::bitwise_not", "bitwise_not"),
        ("x.__iadd__(y)", "aten::add", "add"),
        ("nn.utils.rnn.pack_padded_sequence", "aten::_pack_padded_sequence", "_pack_padded_sequence"),
    ],
)
def test_names_as_users_write_them(written: str, operator: str, shown: str) -> None:
    reply = answer(written)
    assert (reply.operator, reply.name) == (operator, shown)


def test_an_unknown_name_is_refused_with_near_ones() -> None:
    with pytest.raises(MpsmithError, match=r"no operator, function or module 'sofmax' \(did you mean softmax"):
        answer("sofmax")
    with pytest.raises(MpsmithError, match=r"mode has no overload 'nosuch'; it has dimname, dimname_out, values"):
        answer("mode.nosuch")
    with pytest.raises(MpsmithError, match=r"no module 'nn.Lineer' \(did you mean nn.Linear"):
        answer("nn.Lineer")
    with pytest.raises(MpsmithError, match=r"module 'x{79}…'$"):
        answer("x" * 5000)
    with pytest.raises(MpsmithError, match=r"np\.median is not of torch"):
        answer("np.median")
    with pytest.raises(MpsmithError, match=r"function or module 'linalg\*'"):
        answer("linalg*")
    for python in ("nn.Sequential", "nn.utils.clip_grad_norm_", "torch.distributions.Normal", "x.numpy()"):
        with pytest.raises(MpsmithError, match=r"is Python code around operators; `mpsmith trace"):
            answer(python)
    with pytest.raises(MpsmithError, match=r"with fused=True it calls one: mpsmith why _fused_adamw_$"):
        answer("torch.optim.AdamW(fused=True)")
    assert answer("_fused_adamw_").operator == "aten::_fused_adamw"
    with pytest.raises(MpsmithError, match="`mpsmith audit --compile --ops OP`"):
        answer("torch.compile(model)")
    with pytest.raises(MpsmithError) as refused:
        answer("nosuch")
    assert "cosh" not in str(refused.value)
    with pytest.raises(MpsmithError, match="no data for torch 9"):
        answer("mode", "9")
    with pytest.raises(MpsmithError):
        answer("")


def test_every_out_overload_is_rare() -> None:
    """The names that end an out= overload are those of torch's schemas."""
    overloads = release_data.load().overloads
    wrong = []
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix("aten::") + (f".{schema.overload_name}" if schema.overload_name else "")
        writes = any(argument.is_out for argument in schema.arguments)
        if name in overloads and writes and not is_rare(name):
            wrong.append(name)
        if name in overloads and not writes and is_rare(name) and not name.endswith(".deprecated"):
            wrong.append(name)
    assert wrong == []


def released(**dispatch: str) -> ReleaseData:
    """Data of torch 1.0.0 and 2.0.0; the dispatch of an overload is a word for each."""
    histories = {
        name: OverloadHistory(name, tuple(words.replace("-", " ").split(",")), (False,) * 2, (False,) * 2, ("-", "-"))
        for name, words in dispatch.items()
    }
    return ReleaseData((ReleaseFacts("1.0.0", "w"), ReleaseFacts("2.0.0", "w")), histories)


def test_a_composite_runs_where_its_parts_do() -> None:
    data = released(norm="composite-implicit,composite-implicit", part="missing,native", usual="native,native")
    support = ReleaseSupport(data, {"norm": Composition(10, {"usual": 10, "part": 2})})
    before, after = (support.of_names(["norm"], (), position) for position in (0, 1))
    assert (before.support, dict(before.lacking)) == (Support.PARTLY, {"part": 0.2})
    assert (after.support, dict(after.lacking)) == (Support.WORKS, {})


def test_a_part_that_every_call_needs_is_decisive_also_through_another_composite() -> None:
    data = released(
        outer="composite-implicit,composite-implicit", inner="composite-implicit,native", part="missing,native"
    )
    parts = {"outer": Composition(4, {"inner": 4}), "inner": Composition(4, {"part": 4})}
    support = ReleaseSupport(data, parts)
    assert support.of_names(["outer"], (), 0).support is Support.NO
    assert support.of_names(["outer"], (), 1).support is Support.WORKS


def test_composites_that_are_made_of_each_other_end() -> None:
    data = released(a="composite-implicit,native", b="composite-implicit,native")
    support = ReleaseSupport(data, {"a": Composition(1, {"b": 1}), "b": Composition(1, {"a": 1})})
    assert support.of_names(["a"], (), 0).uncertain


def test_an_overload_without_a_cpu_kernel_is_a_note() -> None:
    reply = answer("mm")
    assert headline(reply) == "works"
    assert "mm.dtype: the CPU has no kernel for it either" in reply.notes
    assert "mode.values: wrong" in answer("mode").notes  # refused in all dtypes, and that is not a gap


def test_empty_inputs_are_not_evidence() -> None:
    assert has_empty_tensor("(float16[0, 0]), full_matrices=True")
    assert has_empty_tensor("(float32[3], int64[2, 0])")
    assert not has_empty_tensor("(float32[10, 20], 0)")
    assert not has_empty_tensor("(float32[])")
    assert "float16" not in answer("linalg.svd").dtypes.get(CaseVerdict.FALLBACK, ())


def test_a_release_that_was_not_audited_is_answered_from_its_wheel() -> None:
    reply = answer("linalg.svd", "2.15.0")
    assert (reply.support, reply.grade, dict(reply.dtypes)) == (Support.WORKS, None, {})
    assert "nothing was run" in as_text(reply)


@pytest.mark.parametrize(
    ("name", "dtype", "wrong"),
    [
        ("unique_consecutive", "int64", "unique of int64"),
        ("torch.unique", "int64", "unique of int64"),
        ("nn.PReLU", "float32", "prelu with an infinite weight"),
        ("F.logsigmoid", "float32", "softplus and mish"),
        ("linspace", "int32", "linspace of integers"),
        ("_foreach_abs_", "int32", "abs of whole numbers"),
    ],
)
def test_a_composite_of_one_operator_has_its_wrong_results(name: str, dtype: str, wrong: str) -> None:
    reply = answer(name, "2.13.0")
    assert headline(reply).endswith(", with wrong results in some calls")
    assert [finding for finding in reply.wrong if finding.summary.startswith(wrong)]
    assert dtype in (*reply.some.get(CaseVerdict.WRONG, ()), *reply.dtypes.get(CaseVerdict.WRONG, ()))


def test_a_wrong_result_of_one_part_of_several_or_of_out_alone_is_not_the_composites() -> None:
    assert any("out=" in finding.summary for finding in answer("index_select", "2.13.0").wrong)
    assert answer("nn.Embedding", "2.13.0").wrong == ()
    assert any("abs of" in finding.summary for finding in answer("abs", "2.13.0").wrong)
    assert answer("F.l1_loss", "2.13.0").wrong == ()


def test_a_dtype_that_is_mostly_wrong_is_named_once() -> None:
    reply = answer("erfc", "2.13.0")
    assert "int8" in reply.dtypes[CaseVerdict.WRONG]
    assert reply.wrong
    assert "int8" not in reply.some.get(CaseVerdict.WRONG, ())


def test_the_steps_of_a_missing_operator() -> None:
    commands = [step.command for step in steps(answer("linalg.svd"))]
    assert commands[:2] == ["pip install --upgrade 'torch>=2.14.1'", "import mpsmith.kernels"]
    assert steps(answer("mm")) == []
    assert "import mpsmith.kernels" not in [step.command for step in steps(answer("mode", "2.0.1"))]


def test_the_text_has_ten_lines_at_most_and_marks_simulated_results() -> None:
    assert "LSTM with projections is not currently supported" in as_text(answer("nn.LSTM"))
    for name in ("mode", "linalg.svd", "abs", "mm", "nn.LSTM", "_masked_softmax"):
        lines = as_text(answer(name)).splitlines()
        assert len(lines) <= 10
    assert "SIMULATED" in as_text(answer("mode"))
    assert as_data(answer("mode"))["simulated"] is True


def test_an_unreachable_operator_has_a_reason() -> None:
    reply = answer("_masked_softmax")
    assert reply.support is Support.UNKNOWN
    assert "fast path" in as_text(reply)


def test_every_operator_and_function_has_an_answer() -> None:
    names = known_names()
    for operator in names.overloads:
        assert answer(f"aten::{operator}").support in Support
    assert {"nn.LSTM", "linalg.svd", "fft.fft"} <= set(names.functions)
    for name in names.functions:
        assert as_text(answer(name))


def test_kernels_that_calls_lack_are_named() -> None:
    """A call that no recorded composition has, such as one with `max_norm`, and a backward are named by the audit."""
    on_cpu = (CaseVerdict.FALLBACK, CaseVerdict.MISSING)
    for name in measured.measured().names:
        reply = answer(name)
        shown = {*reply.dtypes, *reply.some}
        assert reply.support is Support.WORKS or reply.lacking or CaseVerdict.FALLBACK not in shown, name
        assert reply.support is Support.WORKS or shown.isdisjoint(on_cpu) or not reason(reply).endswith("run on mps.")
    assert set(answer("nn.functional.embedding_bag").lacking) == {"embedding_renorm_"}
    assert set(answer("_upsample_bilinear2d_aa").lacking) == {"_upsample_bilinear2d_aa_backward.grad_input"}


@pytest.mark.parametrize(
    ("name", "release", "why"),
    [
        ("slow_conv3d", "2.15.0", "It calls slow_conv3d_forward, which mps lacks: "),
        ("mm.dtype", "2.13.0", "Neither mps nor the CPU has a kernel for it: it raises NotImplementedError."),
        ("_thnn_fused_lstm_cell_backward", "2.13.0", "It calls _thnn_fused_lstm_cell_backward_impl. Neither mps nor "),
        ("pinverse", "2.13.0", "It calls linalg_svd, which torch always runs on the CPU, and copies "),
        ("linalg.matrix_rank", "2.13.0", "Its calls need _linalg_svd, _linalg_eigh, which mps lacks: "),
        ("nn.Conv3d", "2.2.2", "It refuses every call: Conv3D is not supported on MPS."),
        ("conv_transpose3d", "2.7.1", "It refuses every call: ConvTranspose 3D is not supported on MPS."),
        ("slow_conv3d_forward", "2.13.0", "No program reaches it with tensors on mps: a convolution backend of CPU "),
    ],
)
def test_the_reason_of_an_operator_that_does_not_run(name: str, release: str, why: str) -> None:
    reply = answer(name, release)
    assert reply.support is (Support.UNKNOWN if reply.unreachable else Support.NO)
    assert reason(reply).startswith(why)
    assert "runs on the CPU" not in dtypes(answer("mm.dtype"))


def test_the_data_files_can_be_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "compositions.tsv"
    parts = {"b": Composition(3, {"y": 3, "x": 1}), "a": Composition(1, {})}
    compositions.write(parts, path)
    assert compositions.compositions(path) == parts
    path = tmp_path / "measured.tsv"
    row = MeasuredCalls(
        {CaseVerdict.PASSED: ("float32", "int8"), CaseVerdict.DTYPE_GAP: ("bool",)},
        {CaseVerdict.WRONG: ("int8",)},
        Grade.SHIPPED_KERNEL,
        "opinfo:a:int8:0",
        without_kernel=Composition(3, {"a": 3, "b_": 1}),
        at_sizes=("float32",),
    )
    data = MeasuredNames("2.13.0", True, {"a": row})
    measured.write(data, path)
    assert measured.measured(path) == data


def test_a_malformed_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "compositions.tsv"
    path.write_text("name\tcalls\tparts\na\tmany\tb\n")
    with pytest.raises(MpsmithError, match=r"compositions\.tsv:2"):
        compositions.compositions(path)
    path = tmp_path / "measured.tsv"
    titles = "name\tdtypes\tgrade\tcase\tmessage"
    path.write_text(f"# torch 2.13.0, simulated\n{titles}\na\tpassed=float32\tdispatch only\t-\t-\t1\n")
    with pytest.raises(MpsmithError, match=r"measured\.tsv:3"):
        measured.measured(path)


@pytest.mark.parametrize(
    ("name", "composite"),
    [("gelu", False), ("softshrink", False), ("nn.GELU", False), ("conv2d", True), ("nn.CrossEntropyLoss", True)],
)
def test_the_python_name_of_one_kernel_is_not_composite(name: str, composite: bool) -> None:
    assert answer(name, "2.13.0").composite is composite


def test_the_calls_of_an_opinfo_count_for_an_operator_whose_overloads_all_have_suffixes() -> None:
    assert "int64" in answer("bitwise_and", "2.13.0").dtypes[CaseVerdict.PASSED]  # recorded calls are of bool alone
    assert "complex64" in answer("add", "2.13.0").some[CaseVerdict.WRONG]
