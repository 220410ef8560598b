"""Audits of operators that have rules: everything is explained, and a fault among them is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.audit.findings.audited_surface import audited_surface
from mpsmith.audit.findings.explanations import Explanation, explain
from mpsmith.audit.findings.run_data import read_run
from mpsmith.audit.model.selection import Samples, Settings
from mpsmith.audit.model.verdicts import CaseVerdict
from mpsmith.audit.running.runner import run_audit
from mpsmith.audit.store.store import Store
from mpsmith.simulator.device.faults import Fault
from mpsmith.simulator.opening import DeviceKind

OURS = "mpsmith.kernels"


def explained(
    path: Path,
    ops: tuple[str, ...],
    sources: tuple[str, ...],
    *faults: Fault,
    dtypes: tuple[str, ...] = ("float32", "float16", "uint8"),
    samples: Samples = Samples.DEFAULT,
    imports: tuple[str, ...] = (),
) -> Explanation:
    settings = Settings(
        ops=ops,
        dtypes=dtypes,
        sources=sources,
        samples=samples,
        device=DeviceKind.SIMULATED,
        workers=1,  # each loads torch and the OpInfos
        imports=imports,
        faults=tuple(map(str, faults)),
    )
    run = run_audit(settings, path, resume=False, say=lambda text: None)
    with Store.open(path) as store:
        explanation, _ = explain(read_run(store, run), audited_surface(run))
    return explanation


# Rules of single operators, and the sources whose cases show what they explain.
SHOWN_BY_OPINFOS = {
    "float64-by-definition": "float_power",
    "bincount-in-the-dtype-of-weights": "bincount",
    "mode-out-refuses-mps": "mode",
    "linear-without-forward-ad": "nn.functional.linear",
    "linear-gradients-with-a-history": "nn.functional.linear",
    "lu-solve-out": "linalg.lu_solve",
    "linear-cross-entropy-in-halves": "nn.functional.linear_cross_entropy",
    "pinverse-under-autocast": "pinverse",
    "narrow-copy-error": "narrow_copy",
    "take-overlap-unchecked": "take",
}
SHOWN_BY_SCHEMAS = {
    "stack-out-of-other-devices": "_stack.out",
    "lengths-stay-on-the-cpu": "_pack_padded_sequence.out",
    "compressed-sparse-refused": "_validate_sparse_csr_tensor_args",
    "copies-of-sparse-views": "indices_copy",
    "batch-norm-of-the-cpu": "_batch_norm_no_update",
}
SHOWN_BY_ARGUMENTS = {"shuffle-of-one-group": "native_channel_shuffle", "svd-out-of-another-shape": "linalg_svd.U"}
SHOWN_BY_DRAWS = {"generator-of-mps-in-a-fallback": "binomial"}
SHOWN_BY_LAYOUTS = {
    "contiguous-after-all": "multi_margin_loss_backward.grad_input",
    "expanded-target-refused": "_compute_linear_combination.out",
    "grouped-mm-wants-alignment": "_grouped_mm",
    "native-channel-shuffle-views": "native_channel_shuffle",
}
SHOWN_BY_MIXED_DTYPES = {"ldexp-of-bools": "ldexp", "powsum-without-its-kernel": "_foreach_powsum.Scalar"}
SHOWN_BY_COMPLEX_DTYPES = {"linear-second-derivative": "nn.functional.linear"}
SHOWN_BY_PAIRS = {"addr-in-place-resizes": "addr"}
SHOWN_BY_VARIANTS = {"fallback-resizes-in-rows": "heaviside.out"}


SHOWN_BY_REFUSALS = {
    "integers-refused": "nn.functional.linear",
    "complex-refused": "linalg.inv",
    "no-metal-function": "renorm",
    "antialiasing-of-bytes": "_upsample_bilinear2d_aa",
    "transposed-convolution-in-halves": "nn.functional.conv_transpose3d",
    "adaptive-pools-that-do-not-divide": "nn.functional.adaptive_avg_pool2d",
}


def test_rules_explain_refusals_of_a_mac(tmp_path: Path) -> None:
    operators, dtypes = tuple(SHOWN_BY_REFUSALS.values()), ("complex64", "float16", "uint8")
    explanation = explained(tmp_path / "refused.sqlite", operators, ("opinfo",), dtypes=dtypes)
    assert explanation.unexplained == ()
    assert set(SHOWN_BY_REFUSALS) <= {use.name for use in explanation.rules}


SHOWN_BY_FULL_SAMPLES = "deterministic-bilinear-rounds-otherwise"


def test_the_forms_of_bytes_are_for_full_samples(tmp_path: Path) -> None:
    ops, sources, dtypes = ("nn.functional.upsample_bilinear",), ("forms",), ("uint8",)
    explanation = explained(tmp_path / "store.sqlite", ops, sources, dtypes=dtypes, samples=Samples.FULL)
    assert explanation.unexplained == ()
    assert SHOWN_BY_FULL_SAMPLES in {use.name for use in explanation.rules}


@pytest.mark.parametrize(
    ("shown", "sources", "dtypes"),
    [
        (SHOWN_BY_OPINFOS, ("opinfo", "forms", "errors"), ("float32", "float16", "uint8")),
        (SHOWN_BY_SCHEMAS, ("schema",), ("float32", "float16", "uint8")),
        (SHOWN_BY_ARGUMENTS, ("arguments",), ("float32", "float16", "uint8")),
        (SHOWN_BY_DRAWS, ("schema random",), ("float32", "float16", "uint8")),
        (SHOWN_BY_LAYOUTS, ("schema targets", "schema tensor layouts"), ("float32", "float16", "uint8")),
        (SHOWN_BY_MIXED_DTYPES, ("mixed dtypes", "schema mixed dtypes"), ("float32", "bool")),
        (SHOWN_BY_COMPLEX_DTYPES, ("forms",), ("complex64",)),
        (SHOWN_BY_VARIANTS, ("schema forms",), ("float32", "float16")),
        (SHOWN_BY_PAIRS, ("pairs",), ("float32", "uint8")),
    ],
    ids=["opinfos", "schemas", "arguments", "draws", "layouts", "mixed dtypes", "complex dtypes", "overloads", "pairs"],
)
def test_operators_with_rules_have_nothing_unexplained(
    tmp_path: Path, shown: dict[str, str], sources: tuple[str, ...], dtypes: tuple[str, ...]
) -> None:
    explanation = explained(tmp_path / "store.sqlite", tuple(dict.fromkeys(shown.values())), sources, dtypes=dtypes)
    assert explanation.unexplained == ()
    assert set(shown) <= {use.name for use in explanation.rules}
    assert explanation.stale == (), "a part of the cases makes no rule stale"


# Rules of runs with our kernels, and an operator of which quick samples of one source show what they explain.
SHOWN_BY_KERNELS = {
    "narrow-copy-writes-rows": ("narrow_copy", "pairs", "float32"),
    "memory-taken-for-rows": ("fractional_max_pool2d_backward.grad_input", "schema forms", "float32"),
    "lists-taken-for-rows": ("_fused_adagrad_", "schema forms", "bfloat16"),
    "places-named-twice": ("put_", "schema forms", "float32"),
    "indices-of-other-windows": ("adaptive_max_pool3d_backward", "schema repetition", "float32"),
    "coefficients-of-another-dtype": ("_compute_linear_combination", "schema mixed dtypes", "float32"),
    "no-halves-on-the-cpu": ("nn.functional.multi_margin_loss", "mixed dtypes", "float32"),
}
# The same with the default's samples.
SHOWN_BY_KERNELS_IN_MORE_SAMPLES = {
    "memory-taken-for-another-shape": ("_fused_adagrad.out", "schema", "float32"),
    "roots-less-one": ("_fused_adagrad_", "arguments", "float32"),
    "rows-before-the-first": ("embedding_renorm_", "arguments", "float32"),
    "infinities-as-integers": ("_fake_quantize_learnable_per_tensor_affine_backward", "schema forms", "float32"),
}


@pytest.mark.parametrize(
    ("shown", "samples"),
    [(SHOWN_BY_KERNELS, Samples.QUICK), (SHOWN_BY_KERNELS_IN_MORE_SAMPLES, Samples.DEFAULT)],
    ids=["quick", "default"],
)
def test_rules_about_our_kernels_explain_their_non_passes(
    tmp_path: Path, shown: dict[str, tuple[str, str, str]], samples: Samples
) -> None:
    operators, sources, dtypes = (tuple(dict.fromkeys(column)) for column in zip(*shown.values(), strict=True))
    store = tmp_path / "store.sqlite"
    explanation = explained(store, operators, sources, dtypes=dtypes, samples=samples, imports=(OURS,))
    assert explanation.unexplained == ()
    assert set(shown) <= {use.name for use in explanation.rules}


def test_rules_about_our_antialiased_kernels_explain_their_non_passes(tmp_path: Path) -> None:
    operators = ("_upsample_lanczos2d_aa", "_upsample_bicubic2d_aa_backward")
    explanation = explained(tmp_path / "store.sqlite", operators, ("schema", "schema forms"), imports=(OURS,))
    assert explanation.unexplained == ()
    assert {"antialiased-rows-of-one-column", "sums-beyond-float32"} <= {use.name for use in explanation.rules}


def test_a_fault_in_an_operator_with_rules_is_unexplained(tmp_path: Path) -> None:
    fault = Fault.parse("aten::linear: values when dtype(input, float32)")
    explanation = explained(tmp_path / "store.sqlite", ("nn.functional.linear", "mode"), ("opinfo", "forms"), fault)
    assert explanation.rules
    assert {left.entry for left in explanation.unexplained} == {"nn.functional.linear"}
    assert {left.verdict for left in explanation.unexplained} == {CaseVerdict.WRONG}
    assert all("differ" in left.message for left in explanation.unexplained)
