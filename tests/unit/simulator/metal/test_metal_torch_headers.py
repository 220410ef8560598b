"""Every Metal header that the installed torch ships compiles, and its kernels compute what torch's CPU operators do."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from mpsmith.simulator import metal
from mpsmith.simulator.metal.includes import torch_include
from support.needs import needs_metal_on_host

needs_metal_on_host()

INCLUDE = torch_include()
assert INCLUDE is not None
FOLDERS = ("c10/metal", "ATen/native/mps/kernels")
HEADERS = sorted(str(p.relative_to(INCLUDE)) for folder in FOLDERS for p in (INCLUDE / folder).glob("*.h"))
PREAMBLE = """
#include <metal_stdlib>
using namespace metal;
#include <c10/metal/common.h>
#include <c10/metal/utils.h>
"""
# Headers that expect their includer to have included another one.
BEFORE = {"ATen/native/mps/kernels/SortRadix.h": "#include <ATen/native/mps/kernels/SortMerge.h>\n"}


@pytest.mark.rehearsal
@pytest.mark.parametrize("header", HEADERS)
def test_header_compiles(header: str) -> None:
    library = metal.compile(f"{PREAMBLE}{BEFORE.get(header, '')}#include <{header}>\n")
    text = (Path(str(INCLUDE)) / header).read_text()
    if "host_name" in text and "#define REGISTER" not in text:
        assert dir(library)


@pytest.mark.rehearsal
@pytest.mark.parametrize("header", [h for h in HEADERS if "PrefillAttention" not in h])
def test_header_is_clean_with_real_address_spaces(header: str) -> None:
    # PrefillAttention.h returns references to members, which C++ for OpenCL sees as references to generic memory.
    source = f"{PREAMBLE}{BEFORE.get(header, '')}#include <{header}>\n"
    assert [d for d in metal.check(source, strict=True) if d.severity == "error"] == []


# ---------------------------------------------------------------------------------------------- elementwise kernels
def positive(n: int) -> Any:
    return torch.linspace(0.05, 12.0, n)


def signed(n: int) -> Any:
    return torch.linspace(-4.0, 4.0, n)


def unit(n: int) -> Any:
    return torch.linspace(-0.95, 0.95, n)


special = torch.special
UNARY: dict[str, tuple[Callable[[Any], Any], Callable[[int], Any]]] = {
    "erf": (special.erf, signed),
    "erfc": (special.erfc, signed),
    "erfinv": (special.erfinv, unit),
    "erfcx": (special.erfcx, signed),
    "i0": (special.i0, signed),
    "i0e": (special.i0e, signed),
    "i1": (special.i1, signed),
    "i1e": (special.i1e, signed),
    "digamma": (special.digamma, positive),
    "trigamma": (lambda x: special.polygamma(1, x), positive),
    "log_gamma": (torch.lgamma, positive),
    "sinc": (special.sinc, signed),
    "spherical_bessel_j0": (special.spherical_bessel_j0, signed),
    "entr": (special.entr, positive),
    "bessel_j0_forward": (special.bessel_j0, signed),
    "bessel_j1_forward": (special.bessel_j1, signed),
    "bessel_y0_forward": (special.bessel_y0, positive),
    "bessel_y1_forward": (special.bessel_y1, positive),
    "modified_bessel_i0_forward": (special.modified_bessel_i0, signed),
    "modified_bessel_i1_forward": (special.modified_bessel_i1, signed),
    "modified_bessel_k0_forward": (special.modified_bessel_k0, positive),
    "modified_bessel_k1_forward": (special.modified_bessel_k1, positive),
    "scaled_modified_bessel_k0_forward": (special.scaled_modified_bessel_k0, positive),
    "scaled_modified_bessel_k1_forward": (special.scaled_modified_bessel_k1, positive),
    "log1p": (torch.log1p, positive),
}
POLYNOMIALS = {
    "chebyshev_polynomial_t_forward": special.chebyshev_polynomial_t,
    "chebyshev_polynomial_u_forward": special.chebyshev_polynomial_u,
    "chebyshev_polynomial_v_forward": special.chebyshev_polynomial_v,
    "chebyshev_polynomial_w_forward": special.chebyshev_polynomial_w,
    "shifted_chebyshev_polynomial_t_forward": special.shifted_chebyshev_polynomial_t,
    "shifted_chebyshev_polynomial_u_forward": special.shifted_chebyshev_polynomial_u,
    "shifted_chebyshev_polynomial_v_forward": special.shifted_chebyshev_polynomial_v,
    "shifted_chebyshev_polynomial_w_forward": special.shifted_chebyshev_polynomial_w,
    "hermite_polynomial_h_forward": special.hermite_polynomial_h,
    "hermite_polynomial_he_forward": special.hermite_polynomial_he,
}
BINARY: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "zeta": (special.zeta, "c10::metal::zeta(a + 1.5f, b)"),
    "logaddexp": (torch.logaddexp, "c10::metal::logaddexp(a, b)"),
    "logaddexp2": (torch.logaddexp2, "c10::metal::logaddexp2(a, b)"),
    "xlogy": (special.xlogy, "c10::metal::xlogy(a, b)"),
    "xlog1py": (special.xlog1py, "c10::metal::xlog1py(a, b)"),
    "floor_divide": (torch.floor_divide, "c10::metal::floor_divide(a, b)"),
    "remainder": (torch.remainder, "c10::metal::remainder(a, b)"),
    "power": (torch.pow, "c10::metal::pow(a, b)"),
    "hypotenuse": (torch.hypot, "c10::metal::hypot(a, b)"),
}
DTYPES = {"float": torch.float32, "half": torch.float16, "bfloat": torch.bfloat16}
HALF_TOO = ("erf", "i0", "digamma", "sinc", "entr", "bessel_j0_forward")
# float32 by the errors that the headers' own algorithms have, the others by their precision.
TOLERANCE = {
    "float": {"rtol": 3e-4, "atol": 1e-5},
    "half": {"rtol": 4e-3, "atol": 4e-3},
    "bfloat": {"rtol": 3e-2, "atol": 3e-2},
}


@cache
def elementwise() -> metal.ShaderLibrary:
    source = [PREAMBLE, "#include <c10/metal/special_math.h>\n#include <c10/metal/indexing.h>\n"]
    for name in UNARY:
        source.append(
            f"struct u_{name}_functor {{ template <typename T> T operator()(const T x) {{"
            f" return static_cast<T>(c10::metal::{name}(x)); }} }};\nREGISTER_UNARY_OP(u_{name}, float, float);\n"
        )
    for name in HALF_TOO:
        source.append(f"REGISTER_UNARY_OP(u_{name}, half, half);\nREGISTER_UNARY_OP(u_{name}, bfloat, bfloat);\n")
    for name, (_, expression) in BINARY.items():
        source.append(
            f"struct b_{name}_functor {{ template <typename T> T operator()(const T a, const T b) {{"
            f" return static_cast<T>({expression}); }} }};\nREGISTER_BINARY_OP(b_{name}, float, float);\n"
        )
    for name in POLYNOMIALS:
        source.append(
            f"kernel void p_{name}(device float* out, constant float* x, constant long& n,"
            f" uint i [[thread_position_in_grid]]) {{ out[i] = c10::metal::{name}(x[i], n); }}\n"
        )
    return metal.compile("".join(source), mode="schedules")


def kernel(library: metal.ShaderLibrary, name: str) -> metal.SimulatedKernel:
    member = getattr(library, name)
    assert isinstance(member, metal.SimulatedKernel)
    return member


@pytest.mark.parametrize(
    ("name", "dtype"), [*((n, "float") for n in UNARY), *((n, d) for n in HALF_TOO for d in ("half", "bfloat"))]
)
def test_unary_dense(name: str, dtype: str) -> None:
    reference, inputs = UNARY[name]
    x = inputs(103).to(DTYPES[dtype])  # not a multiple of the four elements a thread takes
    out = torch.full_like(x, torch.nan)
    kernel(elementwise(), f"u_{name}_dense_{dtype}_{dtype}")(out, x, x.numel(), threads=26, arg_casts={2: "int32"})
    torch.testing.assert_close(out, reference(x.float()).to(x.dtype), **TOLERANCE[dtype])


@pytest.mark.parametrize("name", ["erf", "i1", "sinc", "erfinv"])
def test_unary_strided(name: str) -> None:
    reference, inputs = UNARY[name]
    x = inputs(24).reshape(4, 6).t()
    out = torch.empty(6, 4)
    sizes, strides = [4, 6], [6 * 4, 4]  # innermost dimension first, strides in bytes
    kernel(elementwise(), f"u_{name}_strided_float_float")(
        *(out, x, sizes, strides, [4, 16], 2), threads=(4, 6), arg_casts={5: "int32"}
    )
    torch.testing.assert_close(out, reference(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["erf", "i0"])
def test_unary_castout(name: str) -> None:
    reference, inputs = UNARY[name]
    x = inputs(20)
    out = torch.empty(20, dtype=torch.float16)
    kernel(elementwise(), f"u_{name}_dense_castout_float")(out, x, [2, 5], threads=20, arg_casts={2: "int32"})
    torch.testing.assert_close(out, reference(x).half(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", BINARY)
def test_binary_dense(name: str) -> None:
    a, b = positive(64), positive(64).flip(0) + 0.013  # no quotient is a whole number
    reference, _ = BINARY[name]
    out = torch.empty(64)
    kernel(elementwise(), f"b_{name}_dense_float_float")(out, a, b)
    first = a + 1.5 if name == "zeta" else a
    torch.testing.assert_close(out, reference(first, b), rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("name", POLYNOMIALS)
@pytest.mark.parametrize("degree", [3, 8])
def test_polynomials(name: str, degree: int) -> None:
    x = unit(40)
    out = torch.empty(40)
    kernel(elementwise(), f"p_{name}")(out, x, degree)
    torch.testing.assert_close(out, POLYNOMIALS[name](x, degree), rtol=1e-3, atol=1e-3)


# ---------------------------------------------------------------------------------------------- sorting
METAL_NAMES = {
    torch.float32: "float",
    torch.float16: "half",
    torch.bfloat16: "bfloat",
    torch.int32: "int",
    torch.int64: "long",
    torch.int16: "short",
    torch.int8: "char",
    torch.uint8: "uchar",
    torch.bool: "bool",
}


@cache
def sorting() -> metal.ShaderLibrary:
    headers = [f"#include <ATen/native/mps/kernels/{name}.h>\n" for name in ("SortMerge", "SortRadix")]
    return metal.compile(PREAMBLE + "".join(headers))


def rows(dtype: Any, shape: tuple[int, int]) -> Any:
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(-100, 100, shape, generator=generator)
    if dtype.is_floating_point:
        x = x.to(dtype)
        x[0, 3] = torch.nan
        return x
    return x.abs().to(dtype) if dtype in (torch.uint8, torch.bool) else x.to(dtype)


@pytest.mark.parametrize("dtype", METAL_NAMES)
@pytest.mark.parametrize("descending", [False, True])
def test_sort_block(dtype: Any, descending: bool) -> None:
    x = rows(dtype, (2, 200))
    values, indices = torch.empty_like(x), torch.empty(2, 200, dtype=torch.int64)
    kernel(sorting(), f"sort_block_{METAL_NAMES[dtype]}_tptg64_stable")(
        *(x, values, indices, 200, [1, 200], [descending]),
        threads=(64, 2, 1),
        group_size=(64, 1, 1),
        arg_casts={3: "int32", 5: "uint8"},
    )
    expected = torch.sort(x, dim=1, stable=True, descending=descending)
    torch.testing.assert_close(values, expected.values, equal_nan=True, rtol=0, atol=0)
    torch.testing.assert_close(indices, expected.indices)


def test_sort_of_several_blocks() -> None:
    x = rows(torch.float32, (1, 300))
    a, b = torch.empty_like(x), torch.empty_like(x)
    ia, ib = torch.empty(1, 300, dtype=torch.int32), torch.empty(1, 300, dtype=torch.int32)
    library = sorting()
    casts = {3: "int32", 5: "uint8"}
    block = 32 * 4
    blocks = -(-300 // block)
    grid = {"threads": (32 * blocks, 1, 1), "group_size": (32, 1, 1)}
    library.mb_sort_block_float_tptg32(x, a, ia, 300, [1, 300], False, arg_casts=casts, **grid)
    merge_casts = {4: "int32", 5: "uint8"}
    tiles = 2
    while tiles // 2 < blocks:
        library.mb_merge_float_tptg32(a, ia, b, ib, [300, tiles, 0, 0], False, arg_casts=merge_casts, **grid)
        (a, ia), (b, ib) = (b, ib), (a, ia)
        tiles *= 2
    torch.testing.assert_close(a, torch.sort(x).values, equal_nan=True, rtol=0, atol=0)


def test_radix_scan() -> None:
    counts = torch.randint(0, 9, (2, 5000), dtype=torch.int32, generator=torch.Generator().manual_seed(1))
    scanned = counts.clone()
    sorting().radix_scan(scanned, 5000, threads=(1024, 2, 1), group_size=(1024, 1, 1), arg_casts="int32")
    expected = torch.cumsum(counts, 1, dtype=torch.int32) - counts
    torch.testing.assert_close(scanned, expected)


# ---------------------------------------------------------------------------------------------- attention
@cache
def attention() -> metal.ShaderLibrary:
    return metal.compile(f"{PREAMBLE}#include <ATen/native/mps/kernels/DecodeAttention.h>\n", mode="schedules")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [64, 128])
def test_decode_attention(dtype: str, size: int) -> None:
    heads, length = 2, 50
    generator = torch.Generator().manual_seed(2)
    q = torch.randn(heads, 1, size, generator=generator).to(DTYPES[dtype])
    k, v = (torch.randn(heads, length, size, generator=generator).to(DTYPES[dtype]) for _ in range(2))
    out = torch.empty_like(q)
    strides, unused = [size, length * size, length * size, 0], torch.zeros(1)
    kernel(attention(), f"sdpa_vector_{dtype}_{size}_{size}_masknone")(
        *(q, k, v, out, 1, length, strides, [size, size, size, 0], size**-0.5, unused, [0, 0, 0, 0]),
        [heads * size, heads * length * size, heads * length * size, heads],
        threads=(1024 * heads, 1, 1),
        group_size=(1024, 1, 1),
        arg_casts=dict.fromkeys((4, 5, 6, 7, 10, 11), "int32"),
    )
    expected = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float()).to(q.dtype)
    torch.testing.assert_close(out, expected, **TOLERANCE[dtype])


@cache
def prefill() -> metal.ShaderLibrary:
    return metal.compile(f"{PREAMBLE}#include <ATen/native/mps/kernels/PrefillAttention.h>\n", mode="schedules")


@pytest.mark.parametrize(("dtype", "name"), [("float", "float32"), ("half", "float16"), ("bfloat", "bfloat16")])
@pytest.mark.parametrize("causal", [False, True])
def test_prefill_attention_with_simdgroup_matrices(dtype: str, name: str, causal: bool) -> None:
    heads, length, size = 2, 45, 64
    generator = torch.Generator().manual_seed(5)
    q, k, v = (torch.randn(1, heads, length, size, generator=generator).to(DTYPES[dtype]) for _ in range(3))
    out = torch.zeros_like(q)
    strides = [heads * length * size, length * size, size]
    # scale and softcapping (1: none) are floats among ints
    scale = torch.tensor([size**-0.5, 1.0]).view(torch.int32).tolist()
    parameters = [1, heads, size, length, length, 1, *scale, *strides * 4]
    kernel(prefill(), f"prefill_attention_{name}_bq32_bk32_bd64_wm4_wn1_hm0_dc{int(causal)}_mask{name}")(
        *(q, k, v, out, parameters, [0, 0, 0, 0], torch.zeros(1, dtype=q.dtype)),
        threads=(128 * -(-length // 32), heads, 1),
        group_size=(128, 1, 1),
        arg_casts={4: "int32", 5: "int32"},
    )
    expected = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=causal)
    torch.testing.assert_close(out, expected.to(q.dtype), **TOLERANCE[dtype])


# ---------------------------------------------------------------------------------------------- reductions
REDUCTIONS = {
    "threadgroup_sum": (torch.sum, {}),
    "threadgroup_prod": (torch.prod, {}),
    "threadgroup_max": (torch.amax, {}),
    "threadgroup_min": (torch.amin, {}),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("size", [20, 32, 200, 1024])
def test_threadgroup_reductions(name: str, size: int) -> None:
    library = metal.compile(
        f"""{PREAMBLE}#include <c10/metal/reduction_utils.h>
    kernel void reduce(device float* out, constant float* x, uint t [[thread_index_in_threadgroup]],
        uint n [[threads_per_threadgroup]]) {{
      threadgroup float shared[32];
      float r = c10::metal::{name}(shared, x[t], t, n);
      if (t == 0) out[0] = r;
    }}"""
    )
    x = torch.rand(size, generator=torch.Generator().manual_seed(3)) + 0.5
    out = torch.empty(1)
    library.reduce(out, x, threads=size, group_size=size)
    reference, _ = REDUCTIONS[name]
    torch.testing.assert_close(out[0], reference(x.double()).float(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_threadgroup_argument_of_extreme(name: str) -> None:
    library = metal.compile(
        f"""{PREAMBLE}#include <c10/metal/reduction_utils.h>
    kernel void reduce(device int* out, constant float* x, uint t [[thread_index_in_threadgroup]],
        uint n [[threads_per_threadgroup]]) {{
      threadgroup float values[32];
      threadgroup int indices[32];
      int r = c10::metal::threadgroup_{name}(values, indices, x[t], int(t), t, n);
      if (t == 0) out[0] = r;
    }}"""
    )
    x = torch.rand(256, generator=torch.Generator().manual_seed(4))
    out = torch.empty(1, dtype=torch.int32)
    library.reduce(out, x, threads=256, group_size=256)
    assert out[0] == getattr(torch, name)(x)
