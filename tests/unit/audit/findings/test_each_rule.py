"""Each rule of the table explains what it was written for, up to its limit, and nothing beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from mpsmith.audit.findings.explanations import Explainer
from mpsmith.audit.findings.rules import RULES
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.releases.surface.overloads import Surface
from mpsmith.audit.store.records import StoredCase

V = CaseVerdict
SURFACE = Surface((), release="2.13.0", source="made by hand")
DIFFER = "3 of 9 elements differ; at [0]: 1.0, CPU 2.0"


@dataclass(frozen=True)
class Explained:
    """A case that a rule explains: one for each of the operators, messages and dtypes.

    Attributes:
        limit: the largest error that is explained; None where there is none.
        fixed: what must be just so, with another value that is not explained.
        device: the kind of device of which it is true.
    """

    rule: str
    verdict: CaseVerdict
    messages: tuple[str, ...]
    operators: tuple[str, ...] = ("mul",)
    limit: float | None = None
    fixed: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    dtypes: tuple[str, ...] = ("float32",)
    device: str = "both"


SIZES = "raises RuntimeError: The size of tensor a (4) must match the size of tensor b (3) at non-singleton dimension 1"
TABLE = (
    Explained("no-kernel", V.FALLBACK, ("",), fixed={"fallbacks": (("mine::op",), ("aten::op",))}),
    Explained("no-kernel", V.MISSING, ("",), fixed={"fallbacks": (("mine::op",), ())}),
    Explained(
        "float64-by-definition",
        V.DTYPE_GAP,
        (
            "raises TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework",
            "raises TypeError: Trying to convert Double to the MPS backend but it does not",
            "raises TypeError: Trying to convert ComplexDouble to the MPS backend but it",
        ),
        ("float_power", "float_power.out", "double", "cdouble", "_cast_Double", "linalg_pinv.out"),
    ),
    Explained(
        "bincount-in-the-dtype-of-weights",
        V.WRONG,
        (
            "dtype is torch.int32, not torch.float64",
            "output 2: dtype is torch.int32, not torch.float64",
            "dtype is torch.float16, not torch.float64",
        ),
        ("bincount",),
    ),
    Explained(
        "mode-out-refuses-mps",
        V.WRONG,
        ("raises RuntimeError: mode only supports CPU, CUDA and XPU device type, got: mps",),
        ("mode", "mode.values"),
    ),
    Explained(
        "addr-in-place-resizes",
        V.WRONG,
        (
            "returns where the CPU raises RuntimeError: 2D tensor expected, got 0D tensor for input",
            "returns where the CPU raises RuntimeError: 2D tensor expected, got 1D tensor for input",
        ),
        ("addr", "addr_"),
    ),
    Explained(
        "compressed-sparse-refused",
        V.WRONG,
        ("raises RuntimeError: device type of values (mps) must be one of CPU, CUDA",),
        ("_validate_sparse_csr_tensor_args",),
    ),
    Explained(
        "batch-norm-of-the-cpu",
        V.WRONG,
        ("raises RuntimeError: Expected tensor to have CPU Backend, but got tensor with MPS Backend",),
        ("_batch_norm_no_update", "_batch_norm_no_update.out"),
    ),
    Explained(
        "copies-of-sparse-views",
        V.MISSING,
        ("",),
        ("indices_copy", "values_copy.out", "_indices_copy", "_values_copy", "_sparse_broadcast_to_copy"),
    ),
    Explained(
        "lengths-stay-on-the-cpu",
        V.WRONG,
        ("raises RuntimeError: Expected out tensor to have device cpu, but got mps:0 instead",),
        ("_pack_padded_sequence.out",),
    ),
    Explained(
        "linear-without-forward-ad",
        V.WRONG,
        ("raises NotImplementedError: Trying to use forward AD with linear that does not support it",),
        ("nn.functional.linear", "nn.functional.linear_cross_entropy", "nn.functional.multi_head_attention_forward"),
        fixed={"inputs": ("forward mode: (x)", "(x)")},
    ),
    Explained(
        "linear-second-derivative",
        V.WRONG,
        (
            "raises RuntimeError: linear_backward does not support automatic differentiation for outputs with complex"
            " dtype.",
        ),
        ("nn.functional.linear",),
        fixed={"inputs": ("second derivative: (x)", "(x)")},
    ),
    Explained(
        "linear-gradients-with-a-history",
        V.WRONG,
        ("output 2: requires a gradient, the CPU's does not require one",),
        ("nn.functional.linear", "nn.functional.multi_head_attention_forward"),
        fixed={"inputs": ("second derivative: (x)", "(x)")},
    ),
    Explained(
        "lu-solve-out",
        V.WRONG,
        (
            "output 0: shape is [0], not [3, 3]",
            SIZES,
            "returns where the CPU raises RuntimeError: Expected out tensor to have dtype float",
            "returns where the CPU raises RuntimeError: linalg.lu_solve: Expected LU and B to have the same dtype",
        ),
        ("lu_solve", "linalg.lu_solve", "lu_solve.out", "linalg_lu_solve.out"),
        fixed={"source": ("forms", "opinfo")},
    ),
    Explained(
        "linear-cross-entropy-in-halves",
        V.WRONG,
        (DIFFER,),
        ("nn.functional.linear_cross_entropy.chunked_4", "nn.LinearCrossEntropyLoss.train"),
        limit=100.0,
        fixed={"dtype": ("float16", "float32")},
        dtypes=("float16", "bfloat16"),
    ),
    Explained(
        "deterministic-bilinear-rounds-otherwise",
        V.WRONG,
        (DIFFER,),
        ("nn.functional.upsample_bilinear", "nn.functional.interpolate.bilinear"),
        fixed={"inputs": ("deterministic algorithms: (x)", "(x)"), "dtype": ("uint8", "float32")},
        dtypes=("uint8",),
    ),
    Explained(
        "pinverse-under-autocast",
        V.WRONG,
        (
            "raises RuntimeError: expected scalar type Half but found Float",
            "raises RuntimeError: expected scalar type BFloat16 but found Float",
        ),
        ("pinverse",),
        fixed={"inputs": ("autocast float16: (x)", "(x)"), "stage": ("backward", "forward")},
    ),
    Explained(
        "narrow-copy-error",
        V.WRONG,
        ("raises IndexError, the CPU RuntimeError: Expected dim < 2",),
        ("narrow_copy",),
        fixed={"source": ("errors", "opinfo")},
    ),
    Explained(
        "narrow-copy-error",
        V.WRONG,
        ("raises IndexError, the CPU RuntimeError: Expected dim < 2",),
        ("narrow_copy",),
        fixed={"source": ("arguments", "opinfo")},
    ),
    Explained(
        "contiguous-after-all",
        V.WRONG,
        (
            "returns where the CPU raises RuntimeError: _pdist_backward requires self to be contiguous",
            "returns where the CPU raises RuntimeError: _pdist_forward requires contiguous input",
            "returns where the CPU raises RuntimeError: grad_input must be contiguous",
        ),
        ("_pdist_forward", "multi_margin_loss_backward.grad_input", "multilabel_margin_loss_forward.output"),
    ),
    Explained(
        "fallback-resizes-in-rows",
        V.WRONG,
        ("output 0, a view, has stride (12, 4, 1), not (1, 2, 6)",),
        ("heaviside.out", "special_legendre_polynomial_p.out", "special_laguerre_polynomial_l.out"),
        fixed={
            "source": ("schema twins", "schema"),
            "inputs": ("tensor 0 transposed, out= resized: (x)", "tensor 0 transposed: (x)"),
            "fallbacks": (("mine::op",), ("aten::op",)),
        },
    ),
    Explained(
        "expanded-target-refused",
        V.WRONG,
        ("raises RuntimeError: unsupported operation: more than one element of the written-to tensor refers to a",),
        fixed={
            "source": ("targets", "opinfo"),
            "inputs": ("in place expanded: (x)", "in place transposed: (x)"),
        },
    ),
    Explained(
        "grouped-mm-wants-alignment",
        V.WRONG,
        ("raises RuntimeError: expected data_ptr to be aligned to 16 bytes",),
        ("_grouped_mm",),
    ),
    Explained(
        "native-channel-shuffle-views",
        V.WRONG,
        ("raises RuntimeError: view size is not compatible with input tensor's size and stride (at least one",),
        ("native_channel_shuffle",),
    ),
    Explained(
        "ldexp-of-bools",
        V.WRONG,
        ("raises RuntimeError, the CPU NotImplementedError: \"ldexp_cpu_exp\" not implemented for 'Bool'",),
        ("ldexp",),
    ),
    Explained(
        "powsum-without-its-kernel",
        V.WRONG,
        ("returns where the CPU raises NotImplementedError: \"powsum_cpu\" not implemented for 'Long'",),
        ("_foreach_powsum.Scalar",),
    ),
    Explained(
        "lstm-of-onednn",
        V.WRONG,
        ("returns where the CPU raises RuntimeError: could not create a primitive descriptor for the LSTM forward",),
        ("lstm.input", "nn.LSTM"),
    ),
    Explained(
        "take-overlap-unchecked",
        V.WRONG,
        (
            "returns where the CPU raises RuntimeError: unsupported operation: some elements of the input tensor and "
            "the written-to tensor refer to a single memory location",
        ),
        ("take",),
        fixed={"source": ("errors", "opinfo")},
    ),
    Explained(
        "stack-out-of-other-devices",
        V.WRONG,
        (
            "output 0: shape is [6], not [2, 3]",
            "raises RuntimeError: zero-dimensional tensor (at position 0) cannot be concatenated",
            "raises IndexError: Dimension out of range (expected to be in range of [-3, 2], but got 3)",
        ),
        ("_stack.out",),
    ),
    Explained(
        "generator-of-mps-in-a-fallback",
        V.WRONG,
        ("raises RuntimeError: Expected a 'cpu' device type for generator but found 'mps'",),
        ("binomial", "poisson", "poisson.out", "rrelu_with_noise", "rrelu_with_noise_", "rrelu_with_noise.out"),
        fixed={"source": ("schema random", "schema"), "inputs": ("generator=: (x)", "(x)")},
    ),
    Explained(
        "shuffle-of-one-group",
        V.WRONG,
        ("output 0 shares the memory of input 0, unlike the CPU's",),
        ("native_channel_shuffle",),
        fixed={"source": ("arguments", "schema"), "inputs": ("groups=1: (x)", "groups=2: (x)")},
    ),
    Explained(
        "order-that-nobody-asked-for",
        V.WRONG,
        (DIFFER,),
        ("topk", "topk.values", "_unique", "_unique2"),
        fixed={"source": ("arguments", "schema"), "inputs": ("k=2, sorted=False: (x)", "k=2: (x)")},
        device="real",
    ),
    Explained(
        "svd-out-of-another-shape",
        V.WRONG,
        ("output 0, a view, has stride (3, 1), not (1, 5)",),
        ("linalg_svd.U",),
        fixed={"source": ("arguments", "schema"), "inputs": ("full_matrices=False: (x)", "(x)")},
    ),
    Explained(
        "integers-refused",
        V.DTYPE_GAP,
        (
            "raises RuntimeError: MPS device does not support linear for non-float inputs",
            "raises RuntimeError: Convolution is supported only for Floating types",
            "raises RuntimeError: MPS device does not support addr for non-float input",
        ),
        fixed={"dtype": ("int64", "float16")},
        dtypes=("int8", "int16", "int32", "int64", "uint8", "bool", "float32"),
    ),
    Explained(
        "complex-refused",
        V.DTYPE_GAP,
        (
            "raises RuntimeError: linalg.solve.triangular(); Only float is supported!",
            "raises RuntimeError: linalg_inv: not supported for complex types yet!",
            "raises RuntimeError: linalg.lu_factor(): MPS doesn't support complex types.",
            "raises RuntimeError: linalg.lu_factor(): MPS only supports floats.",
            "raises RuntimeError: cholesky_inverse: MPS only supports float type!",
        ),
        fixed={"dtype": ("complex64", "float16")},
        dtypes=("complex64", "float32"),
    ),
    Explained(
        "no-metal-function",
        V.DTYPE_GAP,
        tuple(
            f"raises RuntimeError: Failed to create function state object for: {function}"
            for function in (
                *("renorm_float2", "silu_dense_float2_float2"),
                *("upsample_bicubic2d_uchar", "scatter_prod_dense_long_long"),
            )
        ),
    ),
    Explained(
        "antialiasing-of-bytes",
        V.DTYPE_GAP,
        (
            "raises RuntimeError: _upsample_bilineard2d_aa_out_mps only supports floating-point dtypes",
            "raises RuntimeError: _upsample_bicubic2d_aa_out_mps only supports floating-point dtypes",
        ),
        dtypes=("uint8",),
    ),
    Explained(
        "transposed-convolution-in-halves",
        V.DTYPE_GAP,
        ("raises RuntimeError: ConvTranspose 3D with BF16 or FP16 types is not supported on MPS",),
    ),
    Explained(
        "adaptive-pools-that-do-not-divide",
        V.DTYPE_GAP,
        ("raises NotImplementedError: Adaptive pool MPS: input sizes must be divisible by output sizes. Non-di",),
    ),
    Explained(
        "rounding-of-many-layers",
        V.WRONG,
        (DIFFER,),
        ("nn.LSTM.train", "nn.GRU.eval", "nn.Transformer.train", "nn.TransformerEncoderLayer.eval"),
        limit=4.0,
        fixed={"source": ("modules", "opinfo")},
    ),
    Explained(
        "inner-product-in-another-order",
        V.WRONG,
        ("1 of 1 elements differ; at []: 1.0, CPU 2.0",),
        ("inner",),
        limit=3.0,
        fixed={
            "source": ("sizes", "opinfo"),
            "inputs": ("another kind, 1,025 rows: (x)", "(x)"),
            "dtype": ("float32", "float16"),
        },
    ),
    Explained(
        "gradient-of-many-rows-together",
        V.WRONG,
        ("gradient 0: 9 of 133250 elements differ; at [0, 0, 0]: 1.0, CPU 2.0",),
        ("renorm",),
        limit=10.0,
        fixed={
            "source": ("sizes", "opinfo"),
            "inputs": ("1,025 rows: (x)", "(x)"),
            "dtype": ("float32", "float16"),
        },
    ),
    Explained(
        "sum-over-a-transposed-gradient",
        V.WRONG,
        ("gradient 2: 1 of 4 elements differ; at [0]: 1.0, CPU 2.0",),
        ("nn.functional.conv_transpose3d",),
        limit=2.0,
        fixed={
            "source": ("layouts", "opinfo"),
            "inputs": ("gradients of the outputs transposed: (x)", "(x)"),
            "dtype": ("float32", "float16"),
        },
        dtypes=("float32", "complex64"),
        device="simulated",
    ),
    Explained(
        "simulated-attention-unchecked",
        V.WRONG,
        ("returns where the CPU raises RuntimeError: Expected query, key, and value to have the same dtype, but got",),
        ("nn.functional.scaled_dot_product_attention", "scaled_dot_product_attention"),
        device="simulated",
    ),
    Explained(
        "simulated-transposed-convolution-unchecked",
        V.WRONG,
        (
            "returns where the CPU raises RuntimeError: expected scalar type Float but found Half",
            "returns where the CPU raises RuntimeError: Input type (torch.FloatTensor) and bias type "
            "(torch.LongTensor) should be the same or input",
        ),
        ("nn.functional.conv_transpose3d", "nn.ConvTranspose2d", "nn.LazyConvTranspose1d"),
        fixed={"source": ("mixed dtypes", "opinfo")},
        device="simulated",
    ),
    Explained(
        "simulated-sparse-compressed-of-two-dtypes",
        V.WRONG,
        ("raises NotImplementedError, the CPU RuntimeError: dtype of values (Long) must match dtype of sparse tensor",),
        ("sparse_bsc_tensor.ccol_row_value", "_sparse_compressed_tensor_unsafe"),
        device="simulated",
    ),
    Explained("no-cpu-kernel-for-dtype", V.REFERENCE_FAILED, ("\"mul\" not implemented for 'Half'",)),
    Explained(
        "jiterator-is-for-cuda",
        V.REFERENCE_FAILED,
        ("Jiterator is only supported on CUDA and ROCm GPUs, none are available.",),
        ("jiterator_unary", "jiterator_2inputs_2outputs"),
    ),
    Explained("undefined-on-the-cpu", V.REFERENCE_FAILED, ("the CPU's result depends on uninitialised memory",)),
    Explained(
        "as-strided-scatter-of-views",
        V.REFERENCE_FAILED,
        ('!self.requires_grad() || self.is_contiguous() INTERNAL ASSERT FAILED at "x"',),
        ("as_strided_scatter",),
        fixed={"source": ("layouts", "opinfo")},
    ),
    Explained("cpu-refuses", V.REFERENCE_FAILED, ("sizes do not match",), fixed={"stage": ("forward", "backward")}),
    Explained("asks-for-float64", V.SKIPPED, ("asks for float64, a dtype that mps refuses by design",)),
    Explained("about-the-device", V.SKIPPED, ("answers with the device, or on the CPU, by definition",)),
    Explained("no-samples", V.SKIPPED, ("no samples: SkipTest: no MAGMA",), fixed={"source": ("opinfo", "modules")}),
    Explained(
        "simulated-sparse-compressed",
        V.SKIPPED,
        tuple(
            f"the simulated device has no sparse{kind} tensors"
            for kind in ("_csr", "_csc", "_bsr", "_bsc", " compressed")
        ),
        device="simulated",
    ),
    Explained(
        "simulated-copy-on-write",
        V.SKIPPED,
        ("the simulated device has no copy-on-write storages",),
        device="simulated",
    ),
    Explained(
        "built-without-the-mps-branch",
        V.SKIPPED,
        ("this torch was built without the mps branch of the operator's kernel",),
        device="simulated",
    ),
)


def stored(row: Explained, operator: str, message: str, error: float | None = None, **change: Any) -> StoredCase:
    fields = {name: right for name, (right, _) in row.fixed.items()} | change
    dtype = fields.get("dtype", row.dtypes[0])
    outcome = Outcome(
        row.verdict, fields.get("stage", "forward"), message, fallbacks=fields.get("fallbacks", ()), max_error=error
    )
    name, _, variant = operator.partition(".") if operator.count(".") == 1 else (operator, "", "")
    key = GroupKey(fields.get("source", "opinfo"), name, variant, dtype, "fallback")
    return StoredCase(1, key, 0, outcome, fields.get("inputs", "(x)"))


def rule_for(case: StoredCase, *, simulated: bool = True) -> str:
    rule = Explainer(SURFACE, simulated=simulated).rule_for(case)
    return rule.name if rule else ""


def test_the_table_has_every_rule_in_its_order() -> None:
    assert list(dict.fromkeys(row.rule for row in TABLE)) == [rule.name for rule in RULES]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.rule}-{row.verdict.value}")
def test_a_rule_explains_each_operator_message_and_dtype_that_it_is_for(row: Explained) -> None:
    for operator in row.operators:
        for message in row.messages:
            for dtype in row.dtypes:
                case = stored(row, operator, message, row.limit, dtype=dtype)
                assert rule_for(case) == ("" if row.device == "real" else row.rule)
                assert rule_for(case, simulated=False) == ("" if row.device == "simulated" else row.rule)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.rule}-{row.verdict.value}")
def test_a_rule_explains_nothing_beside_what_it_is_for(row: Explained) -> None:
    operator, message = row.operators[0], row.messages[0]
    for name, (_, wrong) in row.fixed.items():
        assert rule_for(stored(row, operator, message, row.limit, **{name: wrong})) == ""
    if row.limit is not None:
        assert rule_for(stored(row, operator, message, row.limit * 1.001)) == ""
        assert rule_for(stored(row, operator, message, None)) == ""
    if row.operators != ("mul",) and row.rule not in ("jiterator-is-for-cuda",):  # the CPU refuses that one anyway
        assert rule_for(stored(row, "mul", message, row.limit)) == ""
    for verdict in set(V) - {row.verdict, V.REFERENCE_FAILED, V.FALLBACK, V.MISSING}:
        other = stored(row, operator, message, row.limit)
        outcome = Outcome(verdict, other.outcome.stage, message, max_error=row.limit)
        assert rule_for(StoredCase(1, other.group, 0, outcome, other.inputs)) == ""


def test_what_the_rules_say_of_themselves() -> None:
    """What no case can show: the upstream issue, and which rule may explain nothing in a full run."""
    assert {rule.name: rule.upstream for rule in RULES if rule.upstream} == {
        "linear-without-forward-ad": "pytorch/pytorch#137720",
        "adaptive-pools-that-do-not-divide": "pytorch/pytorch#96056",
    }
    assert [rule.name for rule in RULES if rule.standing] == ["undefined-on-the-cpu"]
