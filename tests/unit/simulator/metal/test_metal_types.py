"""Types and operators of the Metal specification: each claim is a Metal expression that must hold, for every type.

The claims compare a vector with its elements, so they need no separate reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mpsmith.simulator import metal
from support.metal_specification import BITS, FLOATS, INTEGERS, SIGNED
from support.needs import needs_metal_on_host

needs_metal_on_host()

PREAMBLE = "#include <metal_stdlib>\nusing namespace metal;\n"
SCALARS = (*INTEGERS, *FLOATS)
SIMD_TYPES = tuple(t for t in SCALARS if BITS.get(t, 0) < 64)
SIMD_WIDTH = 32
BITS_OF_SIZE = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}


def refuted(claims: Sequence[str], before: str = "", threads: int = 1) -> list[str]:
    """The claims that do not hold in some thread; `i` is the thread."""
    body = "".join(f"  holds[{threads} * {n} + i] = ({claim}) ? 1 : 0;\n" for n, claim in enumerate(claims))
    source = (
        f"{PREAMBLE}kernel void k(device int* holds, uint i [[thread_position_in_grid]]) {{\n  {before}\n{body}}}\n"
    )
    holds = np.full(len(claims) * threads, -1, np.int32)
    metal.compile(source).k(holds, threads=threads, group_size=threads)
    return [claim for n, claim in enumerate(claims) if not holds[n * threads : (n + 1) * threads].all()]


def is_type(expression: str, t: str) -> str:
    return f"is_same<decltype({expression}), {t}>::value"


def elements(name: str, width: int) -> list[str]:
    return [f"{name}[{e}]" for e in range(width)]


def vector_of(t: str, values: Sequence[str]) -> str:
    return f"{t}{len(values)}({', '.join(values)})"


def operator_claims(t: str, width: int) -> list[str]:
    """Each operator of two vectors, and of a vector and a scalar, against the operator of the elements."""
    v = f"{t}{width}"
    arithmetic = ["+", "-", "*", "/", *(["%", "&", "|", "^", "<<", ">>"] if t in INTEGERS else [])]
    claims = []
    for op in arithmetic:
        parts = [f"{t}(a[{e}] {op} b[{e}])" for e in range(width)]
        scalar = [f"{t}(a[{e}] {op} s)" for e in range(width)]
        claims += [is_type(f"a {op} b", v), f"all((a {op} b) == {vector_of(t, parts)})"]
        claims += [is_type(f"a {op} s", v), f"all((a {op} s) == {vector_of(t, scalar)})"]
        claims.append(f"[&] {{ {v} c = a; c {op}= b; return all(c == {vector_of(t, parts)}); }}()")
    for op in ("<", ">", "<=", ">=", "==", "!="):
        parts = [f"a[{e}] {op} b[{e}]" for e in range(width)]
        claims += [is_type(f"a {op} b", f"bool{width}"), f"all((a {op} b) == {vector_of('bool', parts)})"]
    claims += [is_type("-a", v), f"all(-a == {vector_of(t, [f'{t}(-{x})' for x in elements('a', width)])})"]
    claims.append(f"[&] {{ {v} c = a; ++c; c++; --c; return all(c == a + {t}(1)); }}()")
    if t in INTEGERS:
        claims.append(f"all(~a == {vector_of(t, [f'{t}(~{x})' for x in elements('a', width)])})")
    return claims


@pytest.mark.parametrize("t", SCALARS)
def test_operators_of_vectors(t: str) -> None:
    for width in (2, 3, 4):
        a, b = (vector_of(t, [f"{t}({n})" for n in row[:width]]) for row in ((7, 20, 3, 90), (2, 3, 1, 4)))
        assert refuted(operator_claims(t, width), f"{t}{width} a = {a}, b = {b}; {t} s = {t}(i + 3);") == []


@pytest.mark.parametrize("t", SCALARS)
def test_constructors_accessors_and_sizes_of_vectors(t: str) -> None:
    size = {"float": 4, "half": 2}.get(t) or BITS[t] // 8
    claims = [
        f"{t}4(a.xy, a.zw).w == a.w && {t}4(a.xyz, a.w).z == a.z && {t}4(a.x, a.yz, a.w).y == a.y",
        f"{t}4(s).w == s && {t}3(a.xy, s).z == s && {t}2(s, a.y).x == s",
        "all(a.wzyx == a.abgr) && all(a.xxyy.zw == a.yy) && a.rgb.g == a.y && a[3] == a.a",
        f"[&] {{ {t}4 c = a; c.xz = a.wy; c.y += s; c[3] = s; return c.x == a.w && c.z == a.y && c.w == s; }}()",
        f"sizeof({t}2) == {2 * size} && sizeof({t}3) == {4 * size} && sizeof({t}4) == {4 * size}",
        f"alignof({t}2) == {2 * size} && alignof({t}3) == {4 * size} && alignof({t}4) == {4 * size}",
        f"sizeof(packed_{t}3) == {3 * size} && alignof(packed_{t}4) == {size} && sizeof(packed_{t}2) == {2 * size}",
        f"[&] {{ packed_{t}3 p = a.xyz; {t}3 v = p; p[1] = s; return v.y == a.y && p.y == s && p.xz.y == a.z; }}()",
        f"{is_type(f'vec<{t}, 3>()', f'{t}3')} && {is_type('a.xy', f'{t}2')}",
        is_type(f"a[0] + {t}(0)", "decltype(a.x + a.x)"),
        f"as_type<{t}>(as_type<{BITS_OF_SIZE[size]}>(s)) == s",
        f"[&] {{ array<{t}, 4> all_of = {{a.x, a.y, a.z, a.w}}; return all_of[2] == a.z && all_of.size() == 4; }}()",
        f"numeric_limits<{t}>::max() >= s && numeric_limits<{t}>::lowest() <= s",
    ]
    assert refuted(claims, f"{t}4 a({t}(1), {t}(2), {t}(3), {t}(4)); {t} s = {t}(i + 5);") == []


@pytest.mark.parametrize("t", [*SCALARS, "bool"])
def test_conversions_to_every_type(t: str) -> None:
    claims = []
    for to in (*SCALARS, "bool"):
        cast = vector_of(to, [f"{to}(v[{e}])" for e in range(3)])
        claims += [f"all({to}3(v) == {cast})", f"static_cast<{to}>(v.x) == ({to})v.x", is_type(f"{to}3(v)", f"{to}3")]
    assert refuted(claims, f"{t}3 v({t}(i), {t}(1), {t}(100));") == []


@pytest.mark.parametrize("t", FLOATS)
def test_matrices(t: str) -> None:
    claims, before = [], []
    for c in (2, 3, 4):
        for r in (2, 3, 4):
            m, name = f"{t}{c}x{r}", f"m{c}{r}"
            numbers = [f"{t}({(n * 7 + 3) % 5})" for n in range(c * r)]
            columns = [f"{t}{r}({', '.join(numbers[k * r : k * r + r])})" for k in range(c)]
            before.append(f"{m} {name}({', '.join(numbers)}), c{name}({', '.join(columns)});")
            same = " && ".join(f"all({name}[{k}] == c{name}[{k}])" for k in range(c))
            claims += [same, f"{name}[{c - 1}][{r - 1}] == {numbers[-1]}", is_type(f"{name}[0] + {t}(0)", f"{t}{r}")]
            claims.append(f"all(transpose({name})[0] == {t}{c}({', '.join(f'{name}[{k}][0]' for k in range(c))}))")
            claims.append(is_type(f"transpose({name})", f"{t}{r}x{c}"))
            claims.append(f"all(({name} + {name} - {name})[1] == {name}[1]) && all((-{name})[0] == -{name}[0])")
            claims.append(
                f"all(({name} * {t}(2))[1] == {name}[1] * {t}(2)) && all(({t}(2) * {name})[0] == {name}[0] * 2)"
            )
            product = " + ".join(f"{name}[{k}] * {t}({k + 1})" for k in range(c))
            ones = ", ".join(f"{t}({k + 1})" for k in range(c))
            claims.append(f"all({name} * {t}{c}({ones}) == {product})")
            claims.append(f"({t}{r}(1) * {name}).x == dot({t}{r}(1), {name}[0])")
            claims.append(f"all(({name} * {t}{c}x{c}({t}(1)))[{c - 1}] == {name}[{c - 1}])")
            claims.append(is_type(f"{name} * {t}4x{c}({t}(1))", f"{t}4x{r}"))
    claims += [f"determinant({t}{n}x{n}({t}(2))) == {t}({2**n})" for n in (2, 3, 4)]
    claims.append(f"determinant({t}4x4(1,2,0,0, 3,4,0,0, 0,0,5,6, 0,0,7,8)) == {t}(4)")
    assert refuted(claims, " ".join(before)) == []


@pytest.mark.parametrize("t", FLOATS)
def test_geometric_functions(t: str) -> None:
    claims = []
    for n in (2, 3, 4):
        v = f"{t}{n}"
        a, b = f"{v}({', '.join(('3', '4', '0', '0')[:n])})", f"{v}({', '.join(('0', '2', '1', '5')[:n])})"
        claims += [f"dot({a}, {b}) == 8", f"length({a}) == 5", f"length_squared({a}) == 25"]
        claims += [f"distance({a}, {v}(0)) == 5", f"distance_squared({a}, {v}(0)) == 25"]
        claims += [f"all(fabs(normalize({a}) * 5 - {a}) < {v}(0.01))", f"all(reflect({a}, {v}(0)) == {a})"]
        claims += [f"all(faceforward({a}, {b}, {a}) == -{a})", f"all(faceforward({a}, -{b}, {a}) == {a})"]
        claims += [f"all(refract({a}, {v}(0), {t}(1)) == {a})", is_type(f"dot({a}, {b})", t)]
        up = f"{v}({', '.join(('0', '1', '0', '0')[:n])})"
        claims.append(f"fabs(refract(-{up}, {up}, {t}(0.5)).y + 1) < 0.01")
    claims.append(f"all(cross({t}3(1, 0, 0), {t}3(0, 1, 0)) == {t}3(0, 0, 1))")
    assert refuted(claims) == []


def test_packing_functions() -> None:
    claims = []
    for f in FLOATS:
        for form, p, n in (
            *(("unorm4x8", "uint", 4), ("snorm4x8", "uint", 4), ("unorm2x16", "uint", 2), ("snorm2x16", "uint", 2)),
            *(("unorm10a2", "uint", 4), ("unorm565", "ushort", 3)),
        ):
            ones = f"{f}{n}(1)"
            claims += [
                f"all(unpack_{form}_to_{f}(pack_{f}_to_{form}({ones})) == {ones})",
                f"all(unpack_{form}_to_{f}(pack_{f}_to_{form}({f}{n}(0))) == {f}{n}(0))",
                f"all(fabs(unpack_{form}_to_{f}(pack_{f}_to_{form}({f}{n}(0.66))) - {f}{n}(0.66)) < {f}{n}(0.02))",
                f"{is_type(f'pack_{f}_to_{form}({ones})', p)} && {is_type(f'unpack_{form}_to_{f}({p}(0))', f'{f}{n}')}",
            ]
        claims.append(
            f"all(fabs(unpack_unorm4x8_srgb_to_{f}(pack_{f}_to_srgb_unorm4x8({f}4(0.5))) - {f}4(0.5)) < {f}4(0.01))"
        )
    claims += [
        "pack_float_to_unorm4x8(float4(0, 1, 0, 1)) == 0xff00ff00u",
        "pack_float_to_snorm2x16(float2(-1, 1)) == 0x7fff8001u",
        "pack_float_to_unorm565(float3(1, 0, 0)) == 31",
        "pack_float_to_unorm10a2(float4(0, 0, 0, 1)) == 3u << 30",
    ]
    assert refuted(claims) == []


def lane_claims(t: str, width: int, prefix: str, lanes: int) -> list[str]:
    """SIMD-group functions of `v`, whose value in lane `l` is `T(l % 3)`; all lanes take part."""
    v = t if width == 1 else f"{t}{width}"
    first = f"({'i' if lanes == 4 else '0'} & ~{lanes - 1}u)"

    def eq(expression: str, value: str) -> str:
        return f"{is_type(expression, v)} && " + (
            f"all({expression} == {v}({value}))" if width > 1 else f"{expression} == {v}({value})"
        )

    def fold(start: str, step: str, count: str = str(lanes)) -> str:
        loop = f"for (uint l = 0; l < {count}; l++) {{ int x = ({first} + l) % 3; {step}; }}"
        return f"[&] {{ int r = {start}; {loop} return r; }}()"

    lane = f"(i - {first})"
    claims = [
        eq(f"{prefix}_sum(v)", fold("0", "r += x")),
        eq(f"{prefix}_product({v}(1))", "1"),
        eq(f"{prefix}_min(v)", fold("9", "r = r < x ? r : x")),
        eq(f"{prefix}_max(v)", fold("0", "r = r > x ? r : x")),
        eq(f"{prefix}_prefix_inclusive_sum(v)", fold("0", "r += x", f"{lane} + 1")),
        eq(f"{prefix}_prefix_exclusive_sum(v)", fold("0", "r += x", lane)),
        eq(f"{prefix}_prefix_inclusive_product({v}(1))", "1"),
        eq(f"{prefix}_prefix_exclusive_product({v}(1))", "1"),
        eq(f"{prefix}_broadcast(v, 2)", f"({first} + 2) % 3"),
        eq(f"{prefix}_broadcast_first(v)", f"{first} % 3"),
        eq(f"{prefix}_shuffle(v, {lane} ^ 1)", "(i ^ 1) % 3"),
        eq(f"{prefix}_shuffle_xor(v, 2)", "(i ^ 2) % 3"),
        eq(f"{prefix}_shuffle_rotate_up(v, 1)", f"({first} + ({lane} + {lanes - 1}) % {lanes}) % 3"),
        eq(f"{prefix}_shuffle_rotate_down(v, 1)", f"({first} + ({lane} + 1) % {lanes}) % 3"),
        eq(f"{prefix}_shuffle_and_fill_up(v, {v}(7), 1)", f"{lane} ? (i - 1) % 3 : 7"),
        eq(f"{prefix}_shuffle_and_fill_down(v, {v}(7), 1)", f"{lane} < {lanes - 1} ? (i + 1) % 3 : 7"),
    ]
    # What comes from outside of the group is undefined.
    for way, inside, other in (("up", f"{lane} > 0", "i - 1"), ("down", f"{lane} < {lanes - 1}", "i + 1")):
        same = f"{prefix}_shuffle_{way}(v, 1) == {v}(({other}) % 3)"
        claims.append(f"{f'all({same})' if width > 1 else f'({same})'} || !({inside})")
    if t in INTEGERS:
        claims += [eq(f"{prefix}_{f}({v}(5))", "5") for f in ("and", "or")] + [eq(f"{prefix}_xor({v}(5))", "0")]
    return claims


@pytest.mark.parametrize("t", SIMD_TYPES)
def test_simd_and_quad_group_functions(t: str) -> None:
    for width in (1, 2, 3, 4):
        v = t if width == 1 else f"{t}{width}"
        claims = [*lane_claims(t, width, "simd", 32), *lane_claims(t, width, "quad", 4)]
        assert refuted(claims, f"{v} v = {v}({t}(i % 3));", threads=SIMD_WIDTH) == []


def test_votes() -> None:
    claims = [
        "simd_all(i < 32) && !simd_all(i < 31) && simd_any(i == 5) && !simd_any(i > 40)",
        "quad_all(i < 32) && quad_any(i % 4 == 1) && !quad_any(i > 40)",
        "(simd_vote::vote_t)simd_ballot(i % 2 == 0) == 0x55555555ul && simd_active_threads_mask().all()",
        "(quad_vote::vote_t)quad_ballot(i % 4 == 3) == 8 && quad_active_threads_mask().all()",
        "simd_is_first() == (i == 0) && quad_is_first() == (i % 4 == 0) && !simd_is_helper_thread()",
    ]
    assert refuted(claims, threads=SIMD_WIDTH) == []


ATOMICS: dict[str, tuple[str, ...]] = {
    "int": ("add", "sub", "min", "max", "and", "or", "xor"),
    "uint": ("add", "sub", "min", "max", "and", "or", "xor"),
    "float": ("add", "sub"),
    "bool": (),
}
CHANGE = {"add": 12, "sub": 6, "min": 3, "max": 9, "and": 1, "or": 11, "xor": 10}


@pytest.mark.parametrize("t", ATOMICS)
def test_atomic_functions(t: str) -> None:
    order = "memory_order_relaxed"
    start, other = ("true", "false") if t == "bool" else ("9", "3")
    body = [f"atomic_store_explicit(p, {t}({start}), {order});"]
    body.append(f"holds[0] = atomic_load_explicit(p, {order}) == {t}({start});")
    body.append(f"holds[1] = atomic_exchange_explicit(p, {t}({other}), {order}) == {t}({start});")
    body.append(f"{t} expected = {t}({other});")
    body.append(f"holds[2] = atomic_compare_exchange_weak_explicit(p, &expected, {t}({start}), {order}, {order});")
    body.append(f"holds[3] = atomic_load_explicit(p, {order}) == {t}({start});")
    for n, name in enumerate(ATOMICS[t]):
        body.append(f"atomic_store_explicit(p, {t}(9), {order});")
        body.append(f"holds[{2 * n + 4}] = atomic_fetch_{name}_explicit(p, {t}(3), {order}) == {t}(9);")
        body.append(f"holds[{2 * n + 5}] = atomic_load_explicit(p, {order}) == {t}({CHANGE[name]});")
    spaces = ["device"] if t == "float" else ["device", "threadgroup"]
    for space in spaces:
        own = f"threadgroup atomic_{t} own; threadgroup auto* p = &own;" if space == "threadgroup" else ""
        head = f"kernel void k(device int* holds, device atomic_{t}* {'unused' if own else 'p'})"
        source = f"{PREAMBLE}{head} {{ {own} {' '.join(body)} }}"
        holds = np.zeros(4 + 2 * len(ATOMICS[t]), np.int32)
        memory: Any = np.zeros(1, np.float32 if t == "float" else np.int32)
        assert [d for d in metal.check(source, strict=True) if d.severity == "error"] == []
        metal.compile(source).k(holds, memory, threads=1)
        assert holds.all(), (space, holds)


def test_64_bit_atomics() -> None:
    source = (
        f"{PREAMBLE}kernel void k(device atomic_ulong* p, uint i [[thread_position_in_grid]]) {{"
        " atomic_max_explicit(p, ulong(i) << 40, memory_order_relaxed);"
        " atomic_min_explicit(p + 1, ulong(i + 2) << 40, memory_order_relaxed); }"
    )
    values = np.array([0, (1 << 64) - 1], np.uint64)
    metal.compile(source).k(values, threads=8)
    assert values.tolist() == [7 << 40, 2 << 40]


def test_signed_types_are_those_of_the_table() -> None:
    assert refuted([f"is_signed<{t}>::value == {str(t in SIGNED).lower()}" for t in INTEGERS]) == []
