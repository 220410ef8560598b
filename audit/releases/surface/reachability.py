"""Named rules for the operators that no user of an mps device can reach, each with its reason.

A rule never drops an overload: it says why the auditor has nothing to run for it. Rules look at declarations
(names, arguments, dispatch keys); a few operators that no predicate describes are named one by one. An overload that
has an MPS kernel is reachable whatever its name looks like.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .native_functions import NativeFunction


@dataclass(frozen=True)
class Reachable:
    """A user can call the operator, or one that calls it, with tensors on mps."""


@dataclass(frozen=True)
class Unreachable:
    """No user of an mps device can call it; `rule` is the name of the rule and `reason` a sentence."""

    rule: str
    reason: str


Reach = Reachable | Unreachable


@dataclass(frozen=True)
class UnreachableRule:
    """A named predicate over declarations. With `spares_composite` it ignores composite overloads, which do run."""

    name: str
    reason: str
    matches: Callable[[NativeFunction], bool]
    spares_composite: bool = False


def _name_like(pattern: str) -> Callable[[NativeFunction], bool]:
    compiled = re.compile(pattern)
    return lambda function: compiled.search(function.operator) is not None


def _named(*operators: str) -> Callable[[NativeFunction], bool]:
    return lambda function: function.operator in operators


def _only_keys(prefix: str) -> Callable[[NativeFunction], bool]:
    """A predicate: every kernel is for one family of backends (`NestedTensorCPU`, `NestedTensorCUDA`, ...)."""
    return lambda function: bool(function.dispatch) and all(key.startswith(prefix) for key in function.dispatch)


def _either(*tests: Callable[[NativeFunction], bool]) -> Callable[[NativeFunction], bool]:
    return lambda function: any(test(function) for test in tests)


def _without_cpu_kernel(test: Callable[[NativeFunction], bool]) -> Callable[[NativeFunction], bool]:
    return lambda function: "CPU" not in function.dispatch and test(function)


RULES: tuple[UnreachableRule, ...] = (
    UnreachableRule(
        "dispatcher-tests",
        "exists only for PyTorch's own tests of its dispatcher and code generator",
        _either(_name_like(r"^_test_"), _named("_foobar")),
    ),
    UnreachableRule(
        "effect-tokens",
        "passes the token with which torch.export orders side effects; only exported graphs on the CPU hold it",
        _either(lambda function: "dep_token" in function.arguments, _named("_make_dep_token")),
    ),
    UnreachableRule(
        "cpu-packed",
        "works on a weight format packed for CPU instructions; mps has other formats and operators",
        _either(_name_like(r"_for_cpu(_|$)"), _name_like(r"^_dyn_quant_"), _name_like(r"^fbgemm_")),
    ),
    UnreachableRule(
        "attention-choice",
        "chooses among the attention kernels of CPU and CUDA; scaled_dot_product_attention asks it on no other device",
        _named("_fused_sdp_choice"),
    ),
    UnreachableRule(
        "quantizer",
        "makes or reads tensors with a quantizer, which only the QuantizedCPU and QuantizedCUDA backends can hold",
        _either(
            _only_keys("Quantized"),
            _name_like(
                r"^(quantize_per_|quantized_|q_per_channel|_empty_.*_quantized$|_make_per_.*_quantized_tensor$)"
            ),
            _named("dequantize", "empty_quantized", "int_repr", "q_scale", "q_zero_point", "qscheme"),
        ),
    ),
    UnreachableRule(
        "mkldnn",
        "belongs to oneDNN, whose tensor layout and kernels exist for x86 and Arm CPUs only",
        _either(_only_keys("Mkldnn"), _name_like(r"mkldnn")),
    ),
    UnreachableRule(
        "nested-strided",
        "works on strided nested tensors; there is no NestedTensorMPS backend, so none can exist on mps",
        # The mask of a TransformerEncoder is looked at as a dense tensor, on every device.
        _either(_only_keys("NestedTensor"), _name_like(r"^_?nested_(?!tensor_from_mask_left_aligned$)")),
    ),
    UnreachableRule(
        "sparse-compressed",
        "converts to or computes in a sparse compressed layout (CSR, CSC, BSR, BSC); mps has no kernels that make one, "
        "and a dense kernel would not add them",
        _either(
            _only_keys("SparseCsr"),
            _name_like(r"^_to_sparse_(csr|csc|bsr|bsc)$"),
            _name_like(r"^_convert_indices_from_"),
            _named("_validate_compressed_sparse_indices", "_spdiags"),
        ),
        spares_composite=True,
    ),
    UnreachableRule(
        "cuda-libraries",
        "a step of cuDNN, MIOpen, cuSPARSELt, CUTLASS or Triton, which exist for CUDA and ROCm devices only",
        _without_cpu_kernel(
            _either(
                _name_like(r"cudnn|miopen|cslt|triton|cutlass|sparse_semi_structured|mixed_dtypes_linear"),
                _name_like(r"^_scaled_dot_product_(flash|efficient|fused)_?attention"),
                _name_like(r"^_(flash|efficient)_attention|^_fill_mem_eff_dropout_mask"),
            )
        ),
        spares_composite=True,
    ),
    UnreachableRule(
        "cuda-steps",
        "an inner step that only CUDA (or XPU) code paths select; the same public operator takes another way on mps",
        _without_cpu_kernel(
            _either(
                _name_like(r"^_thnn_fused_(lstm|gru)_cell"),
                _named("_fused_dropout", "_masked_scale", "_weight_int4pack_mm_with_scales_and_zeros"),
            )
        ),
        spares_composite=True,
    ),
    UnreachableRule(
        "synchronised-batch-norm",
        "a step of torch.nn.SyncBatchNorm, which refuses every device but CUDA, HPU, XPU and privateuseone",
        _name_like(
            r"^batch_norm_(stats|elemt|gather_stats|gather_stats_with_counts|update_stats|backward_(reduce|elemt))$"
        ),
    ),
    UnreachableRule(
        "transformer-fast-path",
        "the inference fast path of torch.nn.MultiheadAttention and TransformerEncoderLayer, which those modules take "
        "on CPU and CUDA only",
        _named(
            "_transformer_encoder_layer_fwd",
            "_native_multi_head_attention",
            "_transform_bias_rescale_qkv",
            "_masked_softmax",
            "_masked_softmax_backward",
            "_addmm_activation",
        ),
    ),
    UnreachableRule(
        "convolution-backends",
        "a convolution backend of CPU or CUDA; at::convolution selects the MPS backend for tensors on mps",
        _either(_name_like(r"^_?slow_conv"), _name_like(r"^_?conv_depthwise")),
        spares_composite=True,
    ),
    UnreachableRule(
        "host-memory", "maps a file into memory of the host, by its nature a CPU operator", _named("from_file")
    ),
    UnreachableRule(
        "other-backends",
        "asks cuFFT, NNPACK or XLA, or is the place where an out-of-tree backend puts its own kernel; torch calls it "
        "for no tensor on mps",
        _name_like(r"^_cufft_|^_nnpack_spatial_convolution$|^_propagate_xla_data$|_overrideable(_backward)?$"),
    ),
    UnreachableRule(
        "private-alias",
        "a private or deprecated twin of a public operator; no public torch function calls it",
        _named("_add_relu", "_add_relu_", "_aminmax"),
    ),
)

# Not a predicate over declarations: `autogen:` names the overload, and PyTorch's code generator then leaves it out.
NEVER_BUILT = UnreachableRule(
    "never-built",
    "native_functions.yaml asks for it, but PyTorch generates no overloads of composite operators: no program can "
    "name it",
    lambda function: False,
)

RULES_BY_NAME = {rule.name: rule for rule in (*RULES, NEVER_BUILT)}


def reach_of(function: NativeFunction, *, has_mps_kernel: bool, composite: bool) -> Reach:
    """Whether a user of an mps device can reach the function, by the first rule that matches it.

    `has_mps_kernel`: native or a structured delegate, or a kernel for sparse tensors on mps.
    """
    if has_mps_kernel:
        return Reachable()
    for rule in RULES:
        if rule.matches(function) and not (composite and rule.spares_composite):
            return Unreachable(rule.name, rule.reason)
    return Reachable()
