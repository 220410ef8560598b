"""Rules about runs with our kernels explain what they were written for, in such runs alone, and nothing beside it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from mpsmith.audit.findings.explanations import Explainer
from mpsmith.audit.findings.rules import ALL_RULES
from mpsmith.audit.findings.rules.own_kernels import OURS, OWN_KERNEL_RULES
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.releases.surface.overloads import Surface
from mpsmith.audit.store.records import StoredCase

SURFACE = Surface((), release="2.15.0", source="made by hand")
DIFFER = "4 of 50 elements differ; at [0, 0, 1]: -3.75, CPU 7.5, float64 7.5"
HALF = "NotImplementedError: \"multi_margin_loss_cpu_kernel\" not implemented for 'Half'"


@dataclass(frozen=True)
class Row:
    """A case that a rule explains, with another source and other inputs that it does not; None where any will do."""

    rule: str
    operator: str
    message: str
    source: str
    inputs: str
    other_source: str | None = None
    other_inputs: str | None = None
    dtype: str = "complex64"
    error: float | None = None


TABLE = (
    Row("narrow-copy-writes-rows", "narrow_copy", DIFFER, "pairs", "out= transposed: (x)", "opinfo", "transposed: (x)"),
    Row("narrow-copy-writes-rows", "narrow_copy", DIFFER, "forms", "stepped, out= transposed: (x)", "schema"),
    Row(
        "memory-taken-for-rows",
        "fractional_max_pool2d.output",
        f"output 0: {DIFFER}",
        "schema targets",
        "written transposed: (x)",
        "schema",
        "written exact: (x)",
    ),
    Row(
        "memory-taken-for-rows",
        "adaptive_max_pool3d_backward.grad_input",
        DIFFER,
        "schema twins",
        "tensor 2 channels last: (x)",
        "opinfo",
        "tensor 1 channels last: (x)",
    ),
    Row(
        "memory-taken-for-rows",
        "fractional_max_pool2d_backward.grad_input",
        f"output 0: {DIFFER}",
        "schema twins",
        "tensor 2 transposed, out= resized: (x)",
        "schema",
        "tensor 0 transposed, out= resized: (x)",
    ),
    Row(
        "memory-taken-for-rows",
        "adaptive_max_pool3d_backward",
        DIFFER,
        "schema tensor layouts",
        "transposed: (x)",
        "schema",
        "stepped: (x)",
    ),
    Row("lists-taken-for-rows", "_fused_adagrad_.tensor_lr", DIFFER, "schema twins", "tensor 4 transposed: (x)"),
    Row(
        "lists-taken-for-rows",
        "_fused_adagrad.tensor_lr_out",
        f"output 3: {DIFFER}",
        "schema targets",
        "out= transposed: (x)",
        "schema",
        "out= resized: (x)",
    ),
    Row(
        "memory-taken-for-another-shape",
        "_fused_adagrad.out",
        "raises RuntimeError: _fused_adagrad_: a parameter, its gradient and its sum must have one dtype and one "
        "shape, got torch.float32 [] and torch.float32 [3, 3, 2, 2, 6]",
        "schema",
        "(x)",
    ),
    Row(
        "roots-less-one",
        "_fused_adagrad_",
        "output 1: 1 of 1 elements differ; at [0, 0, 0]: 24.25188446044922, CPU 24.251710891723633",
        "arguments",
        "eps=-1: (x)",
        "schema",
        "eps=0: (x)",
        dtype="float32",
        error=3.0,
    ),
    Row(
        "places-named-twice",
        "put_",
        "output 0: 1 of 64 elements differ; at [0, 0]: -0.75, CPU -0.25, float64 -0.25",
        "schema twins",
        "tensor 2 transposed: (float32[8, 8], int64[8, 8], float32[8, 8](stride (1, 8)), False)",
        "schema",
        "tensor 2 transposed: (float32[8, 8], int64[8, 8], float32[8, 8](stride (1, 8)), True)",
    ),
    Row(
        "rows-before-the-first",
        "embedding_renorm_",
        "raises AcceleratorError: embedding_renorm_(): index -1 is out of range of 6 rows (embedding_renorm.metal:35)",
        "arguments",
        "indices[-1]=-1: (x)",
        "schema",
    ),
    Row(
        "infinities-as-integers",
        "_fake_quantize_learnable_per_channel_affine_backward",
        "output 1: 2 of 4 elements differ; at [1]: -inf, CPU inf, float64 inf",
        "schema twins",
        "infinities: (x)",
        "schema",
        "nan: (x)",
    ),
    Row(
        "indices-of-other-windows",
        "adaptive_max_pool3d_backward",
        "output 1: 240 of 240 elements differ; at [0]: 0.0, CPU 0.75",
        "schema repetition",
        "with other values: (x)",
        "schema",
        "200 times: (x)",
    ),
    Row(
        "antialiasing-into-one-column",
        "_upsample_lanczos2d_aa",
        DIFFER,
        "arguments",
        "align_corners=True, output_size=[6, 1]: (float32[6, 4, 3, 6])",
        None,
        "output_size=[6, 2]: (float32[6, 4, 3, 1])",
    ),
    Row("antialiasing-into-one-column", "_upsample_lanczos2d_aa", DIFFER, "schema", "(float32[2], [6, 1], False)"),
    Row(
        "antialiasing-into-one-column",
        "_upsample_lanczos2d_aa.vec",
        DIFFER,
        "schema",
        "(float32[4, 1, 4, 3], None, True, [2.0, 0.5])",
    ),
    Row(
        "complex-infinities",
        "linalg.ldl_solve",
        "4 of 50 elements differ; at [1]: (-2.5+5.5j), CPU (nan+nanj), float64 (nan+nanj)",
        "special values",
        "infinite imaginary part: (x)",
        "opinfo",
        "nan: (x)",
    ),
    Row(
        "factors-of-what-is-not-finite",
        "linalg_svd",
        "returns where the CPU raises _LinAlgError: linalg.svd: (Batch element 0): The algorithm failed to converge",
        "schema special values",
        "infinities: (x)",
        "schema",
        "plain: (x)",
    ),
    Row(
        "factors-of-what-is-not-finite",
        "geqrf",
        "output 0: 1 of 50 elements differ; at [1, 0, 0]: nan, CPU 1.5, float64 1.5",
        "special values",
        "nan middle: (x)",
    ),
    Row(
        "factors-of-what-is-not-finite",
        "geqrf.a",
        "output 0: 4 of 25 elements differ; at [0, 0]: -inf, CPU nan, float64 nan",
        "schema twins",
        "infinities: (x)",
        "schema",
        "largest finite: (x)",
    ),
    Row(
        "factors-of-what-is-not-finite",
        "geqrf",
        "output 0: 2 of 50 elements differ; at [0, 0, 0]: inf, CPU nan, float64 nan",
        "special values",
        "negative infinity in whole rows: (x)",
    ),
    Row(
        "factors-of-what-is-not-finite",
        "linalg.pinv.hermitian",
        "returns where the CPU raises _LinAlgError: linalg.eigh: (Batch element 0): The algorithm failed to converge",
        "special values",
        "one infinity: (x)",
    ),
    Row(
        "factors-of-what-is-not-finite",
        "svd",
        "returns where the CPU raises _LinAlgError: linalg.svd: The algorithm failed to converge because",
        "special values",
        "negative infinity in whole rows: (x)",
    ),
    Row(
        "condition-of-a-singular-matrix",
        "linalg.cond",
        "gradient 0: 9 of 25 elements differ; at [0, 1]: nan, CPU -inf, float64 -inf",
        "tensor layouts",
        "tensor 0 expanded: (x)",
        "opinfo",
        "tensor 0 transposed: (x)",
    ),
    Row(
        "values-beyond-float32",
        "linalg.svd",
        "output 0: 9 of 9 elements differ; at [0, 0]: 0.5773502588272095, CPU -0.5773502588272095",
        "special values",
        "largest finite: (x)",
        "opinfo",
        "denormals: (x)",
    ),
    Row(
        "squares-beyond-float32",
        "std",
        "output 0: 1 of 1 elements differ; at []: inf, CPU nan, float64 1.9649359631420576e+38",
        "pairs",
        "over 1,024 rows, largest finite, transposed, out= transposed: (x)",
        "opinfo",
        "over 1,024 rows, transposed: (x)",
    ),
    Row(
        "sums-beyond-float32",
        "_upsample_lanczos2d_aa_backward.grad_input",
        "output 0: 8 of 24 elements differ; at [0, 0, 0, 2]: nan, CPU -1.167427405648889e+38",
        "schema twins",
        "largest finite: (x)",
        "schema",
        "denormals: (x)",
    ),
    Row(
        "gradients-of-equal-singular-values",
        "linalg.svd",
        "gradient 0: 9 of 9 elements differ; at [0, 0]: (nan+nanj), CPU (1.0+1.5j), float64 (-0.25-0.5j)",
        "layouts",
        "expanded: (x)",
        "opinfo",
        "transposed: (x)",
    ),
    Row(
        "exponentials-beyond-float32",
        "matrix_exp",
        "50 of 125 elements differ; at [2, 0, 0]: nan, CPU 1.0, float64 inf",
        "special values",
        "largest finite: (x)",
        "opinfo",
        "denormals: (x)",
    ),
    Row(
        "gels-without-full-rank",
        "linalg.lstsq.grad_oriented",
        "returns where the CPU raises _LinAlgError: torch.linalg.lstsq: The least squares solution could not be",
        "pairs",
        "expanded, others expanded: (float32[4, 3](stride (0, 1))), driver='gels'",
        "opinfo",
        "expanded, others expanded: (float32[4, 3](stride (0, 1))), driver='gelsd'",
    ),
    Row(
        "products-of-pseudoinverses",
        "linalg.pinv.hermitian",
        "gradient 0: 1 of 25 elements differ; at [0, 0, 4, 0]: 0.0233, CPU 0.0232, float64 0.0232",
        "gradients",
        "gradients of the outputs offset: (x)",
        "opinfo",
        dtype="float32",
        error=2.45,
    ),
    Row("combinations-of-complex-numbers", "_compute_linear_combination.out", DIFFER, "schema", "(x)"),
    Row(
        "coefficients-of-another-dtype",
        "_compute_linear_combination",
        "raises RuntimeError: _compute_linear_combination: inputs and coefficients must have one dtype, got "
        "torch.float16 and torch.float32",
        "schema mixed dtypes",
        "tensor 0 float16: (x)",
        dtype="float32",
    ),
    Row(
        "distances-of-huge-norms",
        "_pdist_backward",
        "output 9: 25 of 25 elements differ; at [0, 0]: 0.0, CPU nan, float64 nan",
        "arguments",
        "numbers near each other: p: (x)",
        "schema",
        "in a row: (x)",
    ),
    Row(
        "distances-of-huge-norms",
        "_pdist_backward",
        "25 of 25 elements differ; at [0, 0]: 0.0, CPU nan, float64 nan",
        "arguments",
        "p=-inf: (x)",
        "schema",
        "p=inf: (x)",
    ),
    Row("no-halves-on-the-cpu", "nn.MultiMarginLoss.eval", f"returns where the CPU raises {HALF}", "modules", "(x)"),
    Row("no-halves-on-the-cpu", "special_airy_ai.out", f"returns where the CPU raises {HALF}", "schema twins", "(x)"),
    Row("no-halves-on-the-cpu", "_pdist_backward", f"raises RuntimeError, the CPU {HALF}", "schema twins", "(x)"),
    Row("no-halves-on-the-cpu", "rrelu_with_noise.out", f"raises RuntimeError, the CPU {HALF}", "schema", "(x)"),
)


def rule_for(
    row: Row,
    *,
    operator: str = "",
    message: str = "",
    source: str = "",
    inputs: str = "",
    verdict: CaseVerdict = CaseVerdict.WRONG,
    imports: tuple[str, ...] = (OURS,),
) -> str:
    name = operator or row.operator
    entry, _, variant = name.partition(".") if name.count(".") == 1 else (name, "", "")
    key = GroupKey(source or row.source, entry, variant, row.dtype, "fallback")
    outcome = Outcome(verdict, "forward", message or row.message, max_error=row.error)
    case = StoredCase(1, key, 0, outcome, inputs or row.inputs)
    rule = Explainer(SURFACE, simulated=True, imports=imports).rule_for(case)
    return rule.name if rule else ""


def test_the_table_has_every_rule_in_its_order() -> None:
    assert list(dict.fromkeys(row.rule for row in TABLE)) == [rule.name for rule in OWN_KERNEL_RULES]
    assert {rule.imported for rule in OWN_KERNEL_RULES} == {OURS}
    assert set(OWN_KERNEL_RULES) < set(ALL_RULES)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.rule}-{row.operator}")
def test_a_rule_explains_what_it_is_for_in_runs_with_our_kernels(row: Row) -> None:
    assert rule_for(row) == row.rule
    assert rule_for(row, imports=()) == ""
    assert rule_for(row, imports=("another.package",)) == ""


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.rule}-{row.operator}")
def test_a_rule_explains_nothing_beside_it(row: Row) -> None:
    assert rule_for(row, operator="mul") == ""
    assert rule_for(row, message="raises RuntimeError: out of luck") == ""
    assert rule_for(row, verdict=CaseVerdict.TIMEOUT) == ""
    if row.other_source is not None:
        assert rule_for(row, source=row.other_source) == ""
    if row.other_inputs is not None:
        assert rule_for(row, inputs=row.other_inputs) == ""
