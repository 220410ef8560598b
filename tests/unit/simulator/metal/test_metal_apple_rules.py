"""What Apple's compiler refuses and clang accepts: one program for each rule, and its neighbour that is right."""

from __future__ import annotations

import pytest

from mpsmith.simulator import metal
from support.needs import needs_metal_on_host

needs_metal_on_host()

PREAMBLE = "#include <metal_stdlib>\nusing namespace metal;\n"
INDEX = "uint i [[thread_position_in_grid]]"


def kernel(parameters: str, body: str) -> str:
    return f"kernel void k({parameters}, {INDEX}) {{ {body} }}"


BF = "device bfloat* o, device const bfloat* a, device const half* h"
# The program, a part of the message, and a program that Apple's compiler accepts.
RULES = {
    "float to bfloat": (kernel(BF, "o[i] = a[i] * 2.0f;"), "cubecl", kernel(BF, "o[i] = bfloat(a[i] * 2.0f);")),
    "abs of bfloat": (kernel(BF, "o[i] = abs(a[i]);"), "bfloat", kernel(BF, "o[i] = bfloat(abs(a[i]));")),
    "half to bfloat": (kernel(BF, "bfloat b = h[i]; o[i] = b;"), "bfloat", kernel(BF, "o[i] = bfloat(h[i]) + 1;")),
    "bfloat or float": (
        kernel(BF, "o[i] = a[i] > bfloat(0) ? a[i] : 0.0f;"),
        "bfloat",
        kernel(
            BF, "o[i] = a[i] > 0 ? a[i] : 0; o[i] += select(a[i], o[i], true); float f = a[i]; o[i] = -a[i]; (void)f;"
        ),
    ),
    "constant without constant": ("constexpr int N = 8;", "AdaptiveCpp", "constant constexpr int N = 8;"),
    "static member": (
        "struct S { static constexpr int n = 3; };",
        "constant address space",
        "struct S { static constant constexpr int n = 3; enum { m = 4 }; int member = 5; };",
    ),
    "threadgroup at program scope": (
        "threadgroup float s[32];",
        "constant address space",
        "constexpr sampler s(coord::pixel); typedef float F; using G = float; float f(float x);",
    ),
    "sum of long": (
        kernel("device long* o", "o[i] = simd_sum(o[i]);"),
        "64-bit",
        kernel("device int* o", "o[i] = simd_sum(o[i]);"),
    ),
    "shuffle of ulong": (
        kernel("device ulong* o", "o[i] = simd_shuffle_down(o[i], 1);"),
        "64-bit",
        kernel("device ulong* o", "o[i] = as_type<ulong>(simd_shuffle_down(as_type<uint2>(o[i]), 1));"),
    ),
    "shuffle of a struct": (
        "struct S { float a; };" + kernel("device S* o", "S s = o[i]; o[i] = simd_shuffle(s, 1);"),
        "not a struct",
        "struct S { float a; };" + kernel("device S* o", "o[i].a = simd_shuffle(o[i].a, 1);"),
    ),
    "maximum of bfloat": (
        kernel(BF, "o[i] = simd_max(a[i]);"),
        "bfloat",
        kernel(BF, "o[i] = bfloat(simd_max(float(a[i])));"),
    ),
    "atomic add of ulong": (
        kernel("device atomic_ulong* o", "atomic_fetch_add_explicit(o, 1ul, memory_order_relaxed);"),
        "atomic_ulong",
        kernel("device atomic_ulong* o", "atomic_max_explicit(o, 1ul, memory_order_relaxed);"),
    ),
    "atomic of uchar": (
        kernel("device atomic<uchar>* o", "atomic_fetch_or_explicit(o, (uchar)1, memory_order_relaxed);"),
        "int, uint, bool, float and ulong",
        kernel("device atomic<uint>* o", "atomic_fetch_or_explicit(o, 1u, memory_order_relaxed);"),
    ),
    "atomic maximum of float": (
        kernel("device atomic_float* o", "atomic_fetch_max_explicit(o, 1.0f, memory_order_relaxed);"),
        "SPIRV-Cross",
        kernel("device atomic_float* o", "atomic_fetch_add_explicit(o, 1.0f, memory_order_relaxed);"),
    ),
    "atomic float in threadgroup memory": (
        kernel(
            "device float* o",
            "threadgroup atomic_float s; atomic_store_explicit(&s, 0.0f, memory_order_relaxed); o[i] = 0;",
        ),
        "device memory only",
        kernel(
            "device float* o",
            "threadgroup atomic_uint s; atomic_store_explicit(&s, 0u, memory_order_relaxed); o[i] = 0;",
        ),
    ),
    "positions of two lengths": (
        "kernel void k(device int* o, uint2 g [[thread_position_in_grid]], uint3 t [[threads_per_threadgroup]]) {}",
        "'g' has 2 components and 't' has 3 components",
        "kernel void k(device int* o, uint2 g [[thread_position_in_grid]], ushort2 t [[threads_per_threadgroup]],"
        " uint s [[thread_index_in_simdgroup]]) {}",
    ),
    "signed position": (
        "kernel void k(device int* o, int g [[thread_position_in_grid]]) { o[g] = 1; }",
        "'g' has type 'int'; a position has uint or ushort",
        "kernel void k(device int* o, unsigned int g [[thread_position_in_grid]]) { o[g] = 1; }",
    ),
    "position of 64 bits": (
        "kernel void k(device int* o, ulong2 g [[threads_per_grid]]) { o[g.x] = 1; }",
        "'g' has type 'ulong2'",
        "kernel void k(device int* o, ushort2 g [[threads_per_grid]]) { o[g.x] = 1; }",
    ),
    "ordered atomic": (
        kernel("device atomic_uint* o", "atomic_fetch_add_explicit(&o[i], uint(1), memory_order_acq_rel);"),
        "not memory_order_acq_rel",
        kernel("device atomic_uint* o", "atomic_fetch_add_explicit(&o[i], uint(1), memory_order_relaxed);"),
    ),
    "both names of the width": (
        kernel("device int* o, uint a [[thread_execution_width]], uint b [[threads_per_simdgroup]]", "o[i] = a + b;"),
        "m1-gpu-cpp",
        kernel("device int* o, uint a [[thread_execution_width]]", "o[i] = a;"),
    ),
    "kernel that returns": (
        "kernel float k(device float* o) { return o[0]; }",
        "must return void",
        "kernel void k(device float* o) { return; }",
    ),
    "device pointer for a constant parameter": (
        "float f(constant float* p) { return *p; }" + kernel("device float* o", "o[i] = f(o + i);"),
        "'device'",
        "constant float table[2] = {1, 2}; float f(constant float* p) { return *p; }"
        + kernel("device float* o, constant float* c", "o[i] = f(c + i) + f(table);"),
    ),
    "member function of an object in device memory": (
        "struct S { float a; float f() const { return a; } };" + kernel("device S* o", "o[i].a = o[i].f();"),
        "expression of type 'device S'",
        "struct S { float a; float f() const device { return a; } float g() const { return a; } static float h(float x)"
        " { return x; } S(float x) : a(x) {} operator float() const { return g(); } template <class T> T t(T x) const"
        " { return x + a; } };"
        + kernel("device S* o", "S s = o[i]; thread S& t = s; o[i].a = o[i].f() + t.g() + S::h(s) + S(2.0f).t(1.0f);"),
    ),
    "goto": (
        kernel("device int* o", "again: if (o[i]++ < 3) goto again;"),
        "'goto'",
        kernel("device int* o", "o[i]++;"),
    ),
    "virtual": ("struct S { virtual int f() { return 1; } };", "'virtual'", "struct S { int f() { return 1; } };"),
    "noexcept": (
        "bool f() { return noexcept(1 + 1); }",
        "operator noexcept",
        "struct S { float f() const thread noexcept { return 1; } }; float f() noexcept { return 1; }",
    ),
    "bool in a SIMD group": (
        kernel("device bool* o", "o[i] = simd_shuffle(o[i], 0);"),
        "SPIRV-Cross pull request 1499",
        kernel("device bool* o", "o[i] = simd_shuffle(uint(o[i]), 0); o[i] = simd_any(o[i]);"),
    ),
    "power of integers": (
        kernel("device float* o", "o[i] = pow(i, 2);"),
        "ambiguous",
        kernel("device float* o", "o[i] = pow(float(i), 2);"),
    ),
    "dot product of bfloat": (
        kernel(BF, "o[i] = dot(bfloat2(a[i]), bfloat2(a[i]));"),
        "Geometric Functions",
        kernel(BF, "o[i] = bfloat(dot(float2(a[i]), float2(a[i])));"),
    ),
    "integer of 128 bits": (
        kernel("device ulong* o", "o[i] = ulong((unsigned __int128)o[i] * o[i] >> 64);"),
        "Metal.jl",
        kernel("device ulong* o", "o[i] = mulhi(o[i], o[i]);"),
    ),
    "pointer to a pointer": (
        kernel("device bool** o", "o[0][i] = true;"),
        "for each pointer",
        "void f(device bool*& p, device bool** q) { *p = true; *q = p; }"
        + kernel("device bool* device* o, device uint* u", "o[0][i] = true; u[0] = bfloat(2.0f);"),
    ),
    "pointer variable": (
        kernel("device float* o", "const float* p = o + i; o[i] = *p;"),
        "'const float*' needs an address space",
        kernel(
            "device float* o, constant int& n",
            "auto p = o + i; device float& q = *p; q = n * i; float a = n & i; o[i] = a;",
        ),
    ),
    "pointer in a cast": (
        kernel("device float* o", "o[i] = *(uint*)(o + i);"),
        "hashcat",
        kernel("device float* o", "o[i] = *(device uint*)(o + i); float b = (o[i]) * (o[0]); o[i] = b;"),
    ),
    "template arguments deduced for a class": (
        "template <class T> struct box { T v; box(T x) : v(x) {} }; float f() { box b(2.0f); return b.v; }",
        "Metal and C++14",
        "template <class T> struct box { T v; box(T x) : v(x) {} }; float f() { box<float> b(2.0f); return b.v; }",
    ),
    "assembly": (kernel("device int* o", 'asm(""); o[i] = 1;'), "'asm'", ""),
    "static variable": (
        kernel("device int* o", "static int n = 0; o[i] = n++;"),
        "static variable",
        kernel("device int* o", "static constant int n = 3; o[i] = n;"),
    ),
    "thread_local": (kernel("device int* o", "thread_local int n = 0; o[i] = n;"), "'thread_local'", ""),
    "new": (
        kernel("device int* o", "thread int* p = new int(3); o[i] = *p;"),
        "'new'",
        "struct S { S() = default; S(thread const S&) = delete; };",
    ),
    "array of variable length": (
        kernel("device int* o", "int a[i + 1]; a[0] = 1; o[i] = a[0];"),
        "MoltenVK",
        kernel("device int* o", "const int n = 4; int a[n]; a[0] = 1; o[i] = a[0];"),
    ),
}


def errors(source: str, version: metal.MetalVersion = "3.1") -> list[str]:
    return [d.message for d in metal.check(PREAMBLE + source, strict=True, metal=version) if d.severity == "error"]


@pytest.mark.parametrize("name", RULES)
def test_is_refused_with_its_source_and_the_neighbour_is_not(name: str) -> None:
    refused, part, accepted = RULES[name]
    assert any(part in message for message in errors(refused)), errors(refused)
    assert errors(accepted) == []
    assert [d for d in metal.check(PREAMBLE + accepted) if d.severity == "error"] == []


def test_lambdas_came_with_3_2() -> None:
    source = kernel("device float* o, constant int* n", "auto f = [](float x) { return x + 1; }; o[i] = f(o[n[i]]);")
    assert "no lambda" in errors(source, "3.1")[0]
    assert errors(source, "3.2") == errors(source, "4.0") == []


def test_metal_4_is_c_17() -> None:
    source = PREAMBLE + kernel("device float* o", "if constexpr (true) o[i] = 1;")
    assert [d.rule for d in metal.check(source, strict=True, metal="3.2")] == ["c++14"]
    assert metal.check(source, strict=True, metal="4.0") == []


def test_the_version_is_a_macro() -> None:
    source = PREAMBLE + "#if __METAL_VERSION__ < {}\n#error too old\n#endif\n"
    for version, number in (("3.1", 310), ("3.2", 320), ("4.0", 400)):
        assert errors(source.format(number), version) == []
        assert "too old" in errors(source.format(number + 1), version)[0]


def test_nothing_declares_metal_without_its_headers() -> None:
    (found,) = metal.check(f"using namespace metal;\n{kernel('device float* o', 'o[i] = exp(o[i]);')}", strict=True)
    assert (found.line, found.rule) == (1, "apple")
    assert "#include <metal_stdlib>" in found.message
    assert (
        metal.check(f"#include <metal_math>\nusing namespace metal;\n{kernel('device float* o', 'o[i] = exp(o[i]);')}")
        == []
    )


def test_a_missing_header_has_no_other_reason() -> None:
    (found,) = metal.check('#include "nowhere.h"\n', strict=True)
    assert found.message == "'nowhere.h' file not found"
