"""Dtypes that torch's mps kernels refuse. See audit/releases/coverage/refusals.py for torch's own list of them."""

from __future__ import annotations

from ...model.verdicts import CaseVerdict
from .rule import INTEGERS, ExplainingRule

# In calls of this dtype another argument, or what is computed inside (eigenvalues), may be of one that is refused.
MIXED = "float32"
REFUSALS = (
    ExplainingRule(
        "integers-refused",
        "torch's mps kernels of linear, convolution and addr take no integers",
        (CaseVerdict.DTYPE_GAP,),
        r"^raises RuntimeError: (MPS device does not support linear for non-float inputs"
        r"|Convolution is supported only for Floating types|MPS device does not support addr for non-float input)$",
        dtypes=(*INTEGERS, MIXED),
    ),
    ExplainingRule(
        "complex-refused",
        "torch's mps kernels that factor matrices, invert them and solve with them take no complex numbers",
        (CaseVerdict.DTYPE_GAP,),
        r"^raises RuntimeError: (linalg\.solve\.triangular\(\); Only float is supported!"
        r"|linalg_inv: not supported for complex types yet!"
        r"|linalg\.lu_factor\(\): MPS (doesn't support complex types|only supports floats)\."
        r"|cholesky_inverse: MPS only supports float type!)$",
        dtypes=("complex64", MIXED),
    ),
    ExplainingRule(
        "no-metal-function",
        "torch has no Metal function of the operator for this dtype",
        (CaseVerdict.DTYPE_GAP,),
        r"^raises RuntimeError: Failed to create function state object for: (renorm_float2|silu_dense_float2_float2"
        r"|upsample_bicubic2d_uchar|scatter_prod_dense_long_long)$",
    ),
    ExplainingRule(
        "antialiasing-of-bytes",
        "torch's antialiased upsampling takes uint8 on the CPU alone",
        (CaseVerdict.DTYPE_GAP,),
        r"^raises RuntimeError: _upsample_bi(lineard|cubic)2d_aa_out_mps only supports floating-point dtypes$",
    ),
    ExplainingRule(
        "transposed-convolution-in-halves",
        "torch's mps kernel of three-dimensional transposed convolution takes no half precision",
        (CaseVerdict.DTYPE_GAP,),
        r"^raises RuntimeError: ConvTranspose 3D with BF16 or FP16 types is not supported on MPS$",
    ),
    ExplainingRule(
        "adaptive-pools-that-do-not-divide",
        "torch's adaptive average pool on mps asks that one of the two sizes divides the other",
        (CaseVerdict.DTYPE_GAP,),
        r"^raises NotImplementedError: Adaptive pool MPS: ",
        upstream="pytorch/pytorch#96056",
    ),
)
