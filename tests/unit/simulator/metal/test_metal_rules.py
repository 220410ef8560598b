"""One small Metal program for each thing that the simulator finds, and correct ones that it leaves alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mpsmith.simulator import metal
from mpsmith.simulator.metal.dispatch import GridLaunch
from mpsmith.simulator.metal.schedules import run_schedules
from support.needs import needs_metal_on_host

needs_metal_on_host()

PREAMBLE = "#include <metal_stdlib>\nusing namespace metal;\n"
FIRST_LINE = 3


@dataclass(frozen=True)
class Bad:
    """A program with one fault, in line `line` counted from the first below the preamble."""

    rule: str
    message: str
    source: str
    line: int = 1
    severity: str = "error"
    strict: bool = False


def body(text: str, parameters: str = "") -> str:
    return (
        f"kernel void k(device float* a, constant float* b{parameters}, uint i [[thread_position_in_grid]]) {{{text}}}"
    )


STATIC = {
    "store to constant": Bad("compile", "not assignable", body("\n  b[i] = 1;"), 2),
    "store through a const pointer": Bad(
        "compile", "not assignable", "kernel void k(device const int* a) { a[0] = 1; }"
    ),
    "unknown function": Bad("compile", "undeclared identifier 'erf'", body("a[i] = erf(b[i]);")),
    "standard library": Bad("compile", "no member named 'exp' in namespace 'std'", body("a[i] = std::exp(b[i]);")),
    "syntax": Bad("compile", "expected ';'", body("\n  a[i] = 1\n"), 2),
    "ambiguous minimum": Bad("compile", "ambiguous", body("uint u = 1; int n = 2; a[i] = min(u, n);")),
    "half2 times float2": Bad("compile", "invalid operands", body("float2 v = half2(1) * float2(2); a[i] = v.x;")),
    "vector shortened silently": Bad("compile", "no viable conversion", body("float2 v = float3(1); a[i] = v.x;")),
    "scalar parameter": Bad(
        "compile", "kernel parameter must be a buffer", "kernel void k(device int* a, int n) { a[0] = n; }"
    ),
    "double": Bad("no-double", "'double' is not supported", body("double d = b[i]; a[i] = d;")),
    "texture": Bad(
        "no-textures", "no textures", "kernel void k(texture2d<float> t [[texture(0)]]) {}", severity="warning"
    ),
    "unknown attribute": Bad(
        "bad-attribute",
        "unknown attribute [[thread_position_in_gird]]",
        "kernel void k(device int* a, uint i [[thread_position_in_gird]]) {}",
    ),
    "buffer without number": Bad("bad-attribute", "needs a number", "kernel void k(device int* a [[buffer(n)]]) {}"),
    "buffer 31": Bad("too-many-buffers", "buffers 0 to 30", "kernel void k(device int* a [[buffer(31)]]) {}"),
    "recursion": Bad(
        "recursion", "'f' calls itself", "int f(int n) {\n  return n ? f(n - 1) : 0; }", 2, severity="warning"
    ),
    "mutual recursion": Bad(
        "recursion",
        "calls itself",
        "int g(int);\nint f(int n) { return g(n); }\nint g(int n) { return f(n); }",
        2,
        severity="warning",
    ),
    "threadgroup memory": Bad(
        "too-much-threadgroup-memory",
        "40000 bytes of threadgroup memory",
        body("threadgroup float s[10000]; s[i] = b[i]; a[i] = s[i];"),
        severity="warning",
    ),
    "if constexpr": Bad("c++14", "C++14", body("if constexpr (true) a[i] = 1;"), severity="warning"),
    "structured bindings": Bad(
        "c++14",
        "C++14",
        "struct P { int x, y; };\nint f(P p) { auto [x, y] = p; return x + y; }",
        2,
        severity="warning",
    ),
    "division by zero": Bad("division-by-zero", "zero", body("a[i] = 1 / 0;"), severity="warning"),
    "device pointer to threadgroup memory": Bad(
        "address-space",
        "device float*",
        body("threadgroup float s[4];\n  device float* p = s; a[i] = p[0];"),
        2,
        strict=True,
    ),
    "thread pointer to device memory": Bad(
        "address-space", "device", body("thread float* p = a; p[0] = 1;"), strict=True
    ),
    "threadgroup argument for device parameter": Bad(
        "address-space",
        "threadgroup",
        "float f(device float* p) { return p[0]; }\n" + body("threadgroup float s[4]; a[i] = f(s);"),
        2,
        strict=True,
    ),
    "pointer parameter without address space": Bad(
        "address-space", "needs an address space", "float f(float* p) { return p[0]; }", strict=True
    ),
    "reference parameter without address space": Bad(
        "address-space", "needs an address space", "void f(float& x) { x = 1; }", strict=True
    ),
}


@pytest.mark.parametrize("name", STATIC)
def test_static_rule_finds(name: str) -> None:
    bad = STATIC[name]
    diagnostics = metal.check(PREAMBLE + bad.source, strict=bad.strict)
    matching = [d for d in diagnostics if d.rule == bad.rule and bad.message in d.message]
    assert matching, diagnostics
    places = {(d.file, d.line, d.severity) for d in matching}
    assert ("program_source", FIRST_LINE + bad.line - 1, bad.severity) in places


@pytest.mark.parametrize("name", [n for n, b in STATIC.items() if b.severity == "error" and not b.strict])
def test_errors_stop_compilation_or_first_use(name: str) -> None:
    with pytest.raises((SyntaxError, RuntimeError), match=r"program_source:\d+"):
        _ = metal.compile(PREAMBLE + STATIC[name].source).k


GOOD = {
    "elementwise": body("a[i] = exp(b[i]) + 0.5;"),
    "overloads by address space": (
        "float f(device const float* p) { return p[0]; }\nfloat f(threadgroup const float* p) { return p[0]; }\n"
        "float f(constant float* p) { return p[0]; }\n"
        + body("threadgroup float s[4]; s[0] = 1; a[i] = f(s) + f(a) + f(b);")
    ),
    "template helpers": (
        "template <typename T, int N> inline T total(thread const T (&v)[N]) {\n"
        "  T s = 0; for (int k = 0; k < N; ++k) s += v[k]; return s; }\n"
        + body("float v[3] = {1, 2, b[i]}; a[i] = total(v);")
    ),
    "library overload that calls the library": "float2 exp(float2 v, int) { return exp(v); }\n"
    + body("a[i] = exp(float2(b[i]), 0).x;"),
    "recursive template": (
        "template <int N> int f() { return N + f<N - 1>(); }\ntemplate <> int f<0>() { return 0; }\n"
        + body("a[i] = f<4>();")
    ),
    "function pointer parameter": "float apply(float (*op)(float), float x) { return op(x); }\n" + body("a[i] = b[i];"),
    "methods on device and thread objects": (
        "struct P { float x; float get() const { return x; } float get() const device { return x; } };\n"
        "kernel void k(device P* p, device float* out) { P q = {1}; out[0] = q.get() + p[0].get(); }"
    ),
    "32 KB of threadgroup memory": body("threadgroup float s[8192]; s[i] = b[i]; a[i] = s[i];"),
    "buffer 30": "kernel void k(device int* a [[buffer(30)]], constant int& n [[buffer(4)]]) { a[0] = n; }",
    "the word double in a comment": "// double\n" + body("a[i] = b[i]; /* double */"),
}


@pytest.mark.parametrize("name", GOOD)
def test_correct_programs_have_no_findings(name: str) -> None:
    assert metal.check(PREAMBLE + GOOD[name], strict=True) == []


# ---------------------------------------------------------------------------------------------- while it runs
def call(source: str, *args: Any, mode: metal.Mode = "checked", **options: Any) -> None:
    metal.compile(PREAMBLE + source, mode=mode).k(*args, **options)


GROUP = ", uint t [[thread_index_in_threadgroup]], uint g [[threadgroup_position_in_grid]]"


def shared(text: str) -> str:
    return (
        f"kernel void k(device float* a, device const float* b{GROUP}, uint i [[thread_position_in_grid]]) {{\n"
        f"  threadgroup float s[64], other[64];\n{text}\n}}"
    )


def floats(n: int) -> Any:
    return np.arange(n, dtype=np.float32)


RACES = {
    "missing barrier": shared("s[t] = b[i]; a[i] = s[63 - t];"),
    "barrier with the wrong flags": shared(
        "s[t] = b[i]; threadgroup_barrier(mem_flags::mem_device); a[i] = s[63 - t];"
    ),
    "barrier without flags": shared("s[t] = b[i]; threadgroup_barrier(mem_flags::mem_none); a[i] = s[63 - t];"),
    "simdgroup barrier across SIMD groups": shared(
        "s[t] = b[i]; simdgroup_barrier(mem_flags::mem_threadgroup); a[i] = s[63 - t];"
    ),
    "write after read": shared(
        "s[t] = b[i]; threadgroup_barrier(mem_flags::mem_threadgroup); float v = s[63 - t]; s[t] = v; a[i] = v;"
    ),
    "all threads write one place": shared("s[0] = t; a[i] = t;"),
    "device memory within a group": shared("a[i] = b[i]; a[64 * g + 63 - t] += 1;"),
    "device memory across groups": shared("a[0] += b[i];"),
    "all threads write one place, in the last alone another value": shared("s[0] = t == 63 ? 5 : 4; a[i] = t;"),
    "groups write different values": shared("a[0] = g;"),
    "values that differ in one byte": shared("((device uint*)a)[0] = 0x01020304u + (t << 16); s[t] = 0;"),
    "an equal store, then another": shared("s[0] = 4; s[0] = t; a[i] = 1;"),
    "stored alike and loaded by others": shared("if (t < 9) s[0] = 4; a[i] = s[t / 64];"),
    "the last store of all": shared("if (t == 0) a[0] = 1; if (t == 63) a[0] = 2;"),
    "loaded after a sum over the SIMD group, stored by others": shared(
        "s[t] = b[i]; threadgroup_barrier(mem_flags::mem_threadgroup); float v = simd_sum(b[i]);"
        " if (t < 32) { a[i] = s[0] + v; if (t == 1) s[0] = v; }"
    ),
    "loaded before a sum over another SIMD group": shared(
        "s[t] = b[i]; threadgroup_barrier(mem_flags::mem_threadgroup); float v = simd_sum(s[0]); if (t == 40) s[0] = v;"
        " a[i] = v;"
    ),
    "stored before a sum over the SIMD group": shared("s[t] = b[i]; float v = simd_sum(b[i]); a[i] = s[t ^ 1] + v;"),
    "atomic and plain access": shared(
        "threadgroup atomic_int n; if (t == 0) *(threadgroup int*)&n = 0;"
        " atomic_fetch_add_explicit(&n, 1, memory_order_relaxed); a[i] = 0;"
    ),
}


@pytest.mark.parametrize("name", RACES)
def test_races_are_found(name: str) -> None:
    with pytest.raises(RuntimeError, match="data race on byte"):
        call(RACES[name], floats(128), floats(128), threads=128, group_size=64)


ORDERED = {
    "threadgroup barrier": shared(
        "s[t] = b[i]; threadgroup_barrier(mem_flags::mem_threadgroup); a[i] = s[63 - t];"
        " threadgroup_barrier(mem_flags::mem_threadgroup); s[t] = 2; other[t] = s[t];"
    ),
    "simdgroup barrier within a SIMD group": shared(
        "s[t] = b[i]; simdgroup_barrier(mem_flags::mem_threadgroup); a[i] = s[t ^ 31];"
    ),
    "loaded before a sum over the SIMD group, stored after it": shared(
        "s[t] = b[i]; threadgroup_barrier(mem_flags::mem_threadgroup);"
        " if (t < 32) { float v = simd_sum(s[t]); s[0] = v; }"
        " threadgroup_barrier(mem_flags::mem_threadgroup); a[i] = s[0];"
    ),
    "device barrier": shared(
        "a[i] = b[i]; threadgroup_barrier(mem_flags::mem_device); float v = a[64 * g + 63 - t];"
        " threadgroup_barrier(mem_flags::mem_device); a[i] = v;"
    ),
    "both flags": shared(
        "s[t] = b[i]; threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup); a[i] = s[63 - t];"
    ),
    "equal stores within a group": shared("s[0] = 4; a[g] = b[0];"),
    "equal stores across groups": shared("a[0] = 7;"),
    "equal stores of parts of a value": shared("((device uchar*)a)[t / 2] = 3;"),
    "many readers": shared("a[i] = b[0] + b[i];"),
    "one writer": shared("if (t == 0) a[g] = b[g];"),
    "uniform return of a whole group before a barrier": shared(
        "if (g == 0) return; s[t] = 1; threadgroup_barrier(mem_flags::mem_threadgroup); a[i] = s[63 - t];"
    ),
}


@pytest.mark.parametrize("name", ORDERED)
def test_ordered_accesses_are_not_races(name: str) -> None:
    call(ORDERED[name], floats(128), floats(128), threads=128, group_size=64)
    call(ORDERED[name], floats(128), floats(128), threads=128, group_size=64, mode="schedules")


def test_barrier_that_some_threads_never_reach() -> None:
    source = shared("if (t > 40) return;\n threadgroup_barrier(mem_flags::mem_none); a[i] = 1;")
    with pytest.raises(RuntimeError, match=r"diverged barrier: 23 of 64 threads .* returned before.*, at .*:6$"):
        call(source, floats(64), floats(64), threads=64, group_size=64)


def test_barriers_in_different_branches() -> None:
    source = shared(
        "if (t < 32) { threadgroup_barrier(mem_flags::mem_none); a[i] = 1; }\n"
        "else { threadgroup_barrier(mem_flags::mem_none); a[i] = 2; }"
    )
    with pytest.raises(RuntimeError, match="wait at different threadgroup_barrier calls"):
        call(source, floats(64), floats(64), threads=64, group_size=64)


OUT_OF_BOUNDS = {
    "load past the end": (body("a[i] = b[i + 1];"), r"load 0 bytes past the end of argument 1 \('b'\) \(40 bytes\)"),
    "store past the end": (body("a[i + 1] = b[i];"), r"store 0 bytes past the end of argument 0 \('a'\)"),
    "load before the start": (body("a[i] = b[(int)i - 1];"), r"load 4 bytes before the start of argument 1"),
    "far away": (body("a[i] = b[i + 100000];"), r"load 399960 bytes past the end of argument 1"),
}


@pytest.mark.parametrize("name", OUT_OF_BOUNDS)
def test_accesses_outside_of_an_argument(name: str) -> None:
    source, message = OUT_OF_BOUNDS[name]
    a = floats(10)
    with pytest.raises(RuntimeError, match=message + r".* by thread \(\d, 0, 0\) of threadgroup"):
        call(source, a, floats(10))
    np.testing.assert_array_equal(a, floats(10))  # nothing was written


WORDS = (
    "kernel void k(device ushort* a, constant uint& one, uint i [[thread_position_in_grid]]) {"
    " atomic_fetch_add_explicit((device atomic_uint*)a + i, one, memory_order_relaxed); }"
)


def test_an_atomic_operation_on_half_a_word_takes_the_word_behind_the_end_too() -> None:
    """As torch's addition of halves and bytes does; it leaves the other half as it was."""
    a = np.zeros(5, np.uint16)
    call(WORDS, a, 1, threads=3)
    np.testing.assert_array_equal(a, [1, 0, 1, 0, 1])
    with pytest.raises(RuntimeError, match=r"out of bounds .* past the end of argument 0 \('a'\)"):
        call(WORDS, a, 1, threads=4)
    with pytest.raises(RuntimeError, match=r"the kernel wrote 0 bytes past the end of argument 0 \('a'\)"):
        call(WORDS, a, 1 << 16, threads=3)


def test_store_outside_of_an_argument_is_an_error_in_fast_mode_too() -> None:
    neighbours = floats(64)
    a = neighbours[16:26]  # a store past its end would land in memory that Python owns
    with pytest.raises(RuntimeError, match="out of bounds"):
        call(body("a[i + 3] = b[i];"), a, floats(10), mode="fast")
    np.testing.assert_array_equal(neighbours, floats(64))


def test_threadgroup_variable_overrun() -> None:
    source = shared(
        "s[t] = 0; other[t] = 0;\n threadgroup_barrier(mem_flags::mem_threadgroup); s[t + 1] = 1; a[i] = b[i];"
    )
    with pytest.raises(RuntimeError, match=r"store 0 bytes past the end of threadgroup variable 's' \(256 bytes\)"):
        call(source, floats(64), floats(64), threads=64, group_size=64)


def test_missing_write_to_threadgroup_memory_shows_as_nan() -> None:
    a = floats(64)
    call(shared("a[i] = s[t];"), a, floats(64), threads=64, group_size=64, mode="fast")
    assert np.isnan(a).all()


def test_result_that_depends_on_the_schedule() -> None:
    source = shared("a[0] = i; a[1 + i] = b[i];")
    with pytest.raises(RuntimeError, match=r"argument 0 \('a'\) depends on the order of the threads: byte \d+ differs"):
        call(source, floats(129), floats(128), threads=128, group_size=64, mode="schedules")


# Each leaves in `n` something that tells which thread came last. The note that a kernel has such an operation must
# outlive inlining and the linker, which drops unreferenced symbols.
READ_MODIFY_WRITE = {
    "fetch_add": "a[atomic_fetch_add_explicit(n, 1, memory_order_relaxed)] = i;",
    "fetch_xor": "a[i] = atomic_fetch_xor_explicit(n, int(i) + 1, memory_order_relaxed);",
    "fetch_max": "a[i] = atomic_fetch_max_explicit(n, int(i), memory_order_relaxed);",
    "exchange": "a[i] = atomic_exchange_explicit(n, int(i), memory_order_relaxed);",
    "compare_exchange": """int seen = 0;
      a[i] = atomic_compare_exchange_weak_explicit(n, &seen, 1, memory_order_relaxed, memory_order_relaxed);""",
    "in a function": "a[place_of(n)] = i;",
}


@pytest.mark.parametrize("name", READ_MODIFY_WRITE)
def test_atomics_may_depend_on_the_schedule(name: str) -> None:
    source = f"""template <typename T> inline int place_of(device T* n) {{
      return atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
    }}
    kernel void k(device int* a, device atomic_int* n, uint i [[thread_position_in_grid]]) {{
      {READ_MODIFY_WRITE[name]}
    }}"""
    a = np.full(64, -1, np.int32)
    call(source, a, np.zeros(1, np.int32), threads=64, mode="schedules")
    if name in ("fetch_add", "in a function"):
        assert sorted(a.tolist()) == list(range(64))


def test_loads_and_stores_that_are_atomic_do_not_excuse_an_order() -> None:
    source = """kernel void k(device int* a, device atomic_int* n, uint i [[thread_position_in_grid]]) {
      atomic_store_explicit(n, int(i), memory_order_relaxed); a[i] = 0; }"""
    with pytest.raises(RuntimeError, match="depends on the order of the threads"):
        call(source, np.zeros(64, np.int32), np.zeros(1, np.int32), threads=64, mode="schedules")


def test_argument_smaller_than_its_parameter() -> None:
    source = "struct P { float4 v[4]; };\nkernel void k(device float* a, constant P& p) { a[0] = p.v[3].x; }"
    with pytest.raises(RuntimeError, match=r"argument 1 \('p'\) holds 16 bytes, and the kernel reads 64"):
        call(source, floats(4), floats(4), threads=1, mode="fast")


def test_division_by_zero_is_an_error_not_a_crash() -> None:
    with pytest.raises(RuntimeError, match="integer division by zero"):
        call(
            "kernel void k(device int* a, constant int& n) { a[0] = a[0] / n; }",
            np.ones(1, np.int32),
            0,
            arg_casts="int32",
        )


def test_function_without_return_does_not_crash() -> None:
    a = floats(4)
    call("float f(float x) { if (x > 100) return 1; }\n" + body("a[i] = f(b[i]) * 0 + 1;"), a, floats(4), mode="fast")


def test_trap_is_an_error_not_a_crash() -> None:
    with pytest.raises(RuntimeError, match="reached code that cannot run"):
        call(body("if (i == 2) __builtin_trap(); a[i] = 1;"), floats(4), floats(4), mode="fast")


def test_too_large_thread_arrays_are_an_error_not_a_crash() -> None:
    source = body("float big[100000]; for (int k = 0; k < 100000; k++) big[(k * 7 + i) % 100000] = k; a[i] = big[i];")
    with pytest.raises(RuntimeError, match="stack overflow"):
        call(source, floats(4), floats(4), mode="fast")


# Fibonacci's numbers, so that no compiler makes a loop of it.
RECURSIVE = """int other(int);
int f(int n) { return n < 2 ? n : f(n - 1) + other(n); }
int other(int n) { return f(n - 2); }
"""


@pytest.mark.parametrize("mode", ["fast", "checked"])
def test_functions_that_call_each_other_run(mode: metal.Mode) -> None:
    a = floats(8)
    call(RECURSIVE + body("a[i] = f(int(b[i]));"), a, floats(8), mode=mode)
    assert a.tolist() == [0, 1, 1, 2, 3, 5, 8, 13]


def test_recursion_without_an_end_is_an_error_not_a_crash() -> None:
    source = "int f(int n, device float* a) { a[n & 3] = n; return f(n + 1, a) * 3 + f(n + 2, a); }\n"
    with pytest.raises(RuntimeError, match="stack overflow"):
        call(source + body("a[i] = f(int(b[i]), a);"), floats(4), floats(4), mode="fast")


def test_null_for_an_argument_that_is_not_passed() -> None:
    with pytest.raises(RuntimeError, match=r"argument 1 \('b'\)"):
        call(body("a[i] = b[i];"), floats(4), mode="fast")


@pytest.mark.parametrize("change", ["fetch_add", "exchange"])
def test_an_atomic_access_out_of_bounds_names_its_line(change: str) -> None:
    source = (
        "kernel void k(device atomic_int* a, uint i [[thread_position_in_grid]]) {\n"
        f"  atomic_{change}_explicit(a + i + 8, 1, memory_order_relaxed);\n}}"
    )
    with pytest.raises(RuntimeError, match=r"past the end of argument 0 .*, at program_source:4$"):
        call(source, np.zeros(9, np.int32))


def test_a_race_of_a_word_with_one_of_its_bytes_is_found() -> None:
    source = (
        "kernel void k(device uint* a, uint i [[thread_position_in_grid]]) {\n"
        "  if (i == 0) a[2] = 5;\n  if (i == 1) a[0] = ((device ushort*)a)[5];\n"
        "  if (i == 2) a[1] = ((device uchar*)a)[9];\n}"
    )
    with pytest.raises(RuntimeError, match=r"race on byte 10 of .*a store by thread 0(.|\n)*race on byte 9 of"):
        call(source, np.zeros(3, np.uint32), threads=3)


def test_errors_in_checked_mode_name_the_line() -> None:
    source = (
        "kernel void k(device float* a, uint i [[thread_position_in_grid]]) {\n  float v = a[i];\n\n  a[i + 8] = v;\n}"
    )
    with pytest.raises(RuntimeError, match=r"store .* past the end of argument 0 .*, at program_source:6$"):
        call(source, floats(9))
    with pytest.raises(
        RuntimeError,
        match=r"a load by thread .* by thread \d+ of the same threadgroup \(program_source:4\), .*, "
        r"at program_source:5\n.* more of the kind$",
    ):
        call(
            shared("s[t] = b[i];\n a[i] = s[63 - t];").replace("{\n  threadgroup", "{ threadgroup"),
            *[floats(64)] * 2,
            threads=64,
        )


def test_the_simulator_goes_on_after_errors() -> None:
    for _ in range(3):
        with pytest.raises(RuntimeError):
            call(OUT_OF_BOUNDS["far away"][0], floats(10), floats(10), mode="fast")
    a = floats(128)
    call(ORDERED["threadgroup barrier"], a, floats(128), threads=128, group_size=64)
    np.testing.assert_array_equal(a, floats(128).reshape(2, 64)[:, ::-1].reshape(-1))


@pytest.mark.parametrize("first", [0, 1])
def test_difference_between_schedules_names_the_first_argument_wherever_its_memory_lies(first: int) -> None:
    memory = [np.zeros(4, np.uint8), np.zeros(4, np.uint8)]
    regions = [(array.ctypes.data, array.nbytes, index, True) for index, array in enumerate(memory)]
    launch = GridLaunch((1, 1, 1), (1, 1, 1), [], regions if first == 0 else regions[::-1])

    def run(launch: GridLaunch) -> None:
        for array in memory:
            array[2] = launch.order == "reverse"

    assert (run_schedules(run, launch) or "").startswith("argument 0 depends on the order of the threads: byte 2 ")
