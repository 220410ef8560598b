"""From preprocessed Metal source to C++: tokens, attributes, declarations and what is rewritten."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpsmith.simulator.clang import Diagnostic
from mpsmith.simulator.metal.attributes import cut_attributes
from mpsmith.simulator.metal.diagnostics import format_report, parse_clang
from mpsmith.simulator.metal.includes import embed
from mpsmith.simulator.metal.rewriter import rewrite
from mpsmith.simulator.metal.tokens import Location, Tokens, UnbalancedError


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


@given(st.text(alphabet=st.sampled_from("ab1.5e+-<>()[]{};,#\"'/ \n\t:=&|*\\"), max_size=80))
def test_tokens_join_to_the_source(source: str) -> None:
    assert Tokens.of(source).join() == source


def test_tokens_keep_numbers_strings_and_operators_whole() -> None:
    tokens = Tokens.of('x += 1.5e-3f<<2 ; s = "a\\"b[["; p->q::r <<= .5h;')
    assert tokens.text[:-1] == [
        *("x", "+=", "1.5e-3f", "<<", "2", ";", "s", "=", '"a\\"b[["', ";"),
        *("p", "->", "q", "::", "r", "<<=", ".5h", ";"),
    ]


def test_places_follow_line_markers() -> None:
    tokens = Tokens.of('# 1 "main"\na\n\nb\n# 7 "other.h" 1\nc d\n# 3 "main" 2\n\ne\n#pragma unroll\nf')
    places = tokens.locate(list(range(len(tokens.text))))
    assert [places[i] for i in range(6)] == [
        *(Location("main", 1), Location("main", 3), Location("other.h", 7)),
        *(Location("other.h", 7), Location("main", 4), Location("main", 6)),
    ]


@pytest.mark.parametrize("source", ["f(", "a]", "(]", "{ ( }"])
def test_unbalanced_brackets(source: str) -> None:
    with pytest.raises(UnbalancedError):
        Tokens.of(source).match_brackets()
    assert rewrite(source).body == source  # clang says what is wrong


@pytest.mark.parametrize(
    ("source", "closed"),
    [("vec<float, 4> x", True), ("a < b; c > d", False), ("f<g<h<(1 > 0)>>>()", True), ("if (a < b)", False)],
)
def test_template_lists_and_comparisons(source: str, closed: bool) -> None:
    tokens = Tokens.of(source)
    tokens.match_brackets()
    end = tokens.close_angle(tokens.text.index("<"))
    assert (end is not None) == closed
    if end is not None:
        assert tokens.text[end] == ">"


def test_attributes_are_cut_and_lines_stay() -> None:
    tokens, attributes = cut_attributes(
        Tokens.of(
            'template\n[[host_name("a" \n "b")]] [[kernel,\n max_total_threads_per_threadgroup(64)]]'
            " void f(int i [[buffer(3)]]);"
        )
    )
    assert squeezed(tokens.join()) == "template void f(int i );"
    assert tokens.join().count("\n") == 3
    assert sorted(a for texts in attributes.values() for a in texts) == [
        *("buffer(3)", 'host_name("a" "b")', "kernel", "max_total_threads_per_threadgroup(64)")
    ]


def test_subscripts_are_not_attributes() -> None:
    tokens, attributes = cut_attributes(Tokens.of("a[b[0]] = c[d[1][2]];"))
    assert tokens.join() == "a[b[0]] = c[d[1][2]];"
    assert attributes == {}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = 1.0 + 2e3 + .5 + 3;", "x = 1.0f + 2e3f + .5f + 3;"),
        ("x = 0x1F + 10u + 1.5f + 7L;", "x = 0x1F + 10u + 1.5f + 7L;"),
        ("h = 1.5h + 2H;", "h = ((half)1.5f) + ((half)2.0f);"),
        ("b = 1bf;", "b = ((bfloat)1.0f);"),
        ("v.xy = w.zyx;", "v.template swizzle_reference<0, 1>() = w.template swizzle<2, 1, 0>();"),
        ("p->rgb += q.a;", "p->template swizzle_reference<0, 1, 2>() += q.a;"),
        ("v.xy == w.xy;", "v.template swizzle<0, 1>() == w.template swizzle<0, 1>();"),
        ("x = half(y);", "x = msl_cast<half>(y);"),
        ("x = (half)y;", "x = msl_c_cast<half>()->*y;"),
        ("x = static_cast<T>(y);", "x = msl_cast<T>(y);"),
        ("x = static_cast<float>(y);", "x = static_cast<float>(y);"),
        ("half (*f)(half) = 0;", "half (*f)(half) = 0;"),
        ("constant bool c [[function_constant(1)]];", "constant bool c = {};"),
    ],
)
def test_words(source: str, expected: str) -> None:
    assert squeezed(rewrite(source).body) == expected


def test_members_named_like_swizzles_stay() -> None:
    assert "p.rg" in rewrite("struct P { float2 rg; }; float f(P p) { return p.rg.x; }").body


def test_overloads_by_address_space_are_one_for_the_host() -> None:
    source = """
    template <typename T> T f(device T* p) { return p[0]; }
    template <typename T> T f(threadgroup T* other_name) { return other_name[1]; }
    float g(device float& x);
    struct S { float get() const device { return 1; } float get() const thread { return 2; }
      S(int n) : v{n} {} int v; };
    template <typename T> struct E {}; template <typename T> struct E<device T*> {};
    template <typename T> struct E<constant T*> {};
    template <typename T> struct E<thread T*> {};
    """
    host, strict = rewrite(source).body, rewrite(source, "strict").body
    assert host.count("T f(") == 1
    assert host.count("get() const") == 1
    assert host.count("struct E<") == 2  # of const T and of T
    assert strict.count("T f(") == 2
    assert strict.count("get() const") == 2
    assert host.count("\n") == source.count("\n")


def test_threadgroup_variables() -> None:
    source = (
        "kernel void k() {\n  threadgroup float a[4],\n    b;\n  threadgroup float* p = a;\n  { threadgroup int c; }\n}"
    )
    body = rewrite(source).body
    assert squeezed(body) == squeezed(
        """inline void k() { MSL_SHARED float a[4]; MSL_SHARED_END(a); MSL_SHARED float b; MSL_SHARED_END(b);
        MSL_SHARED_TOTAL(sizeof(a) + sizeof(b)); threadgroup float* p = a;
        { MSL_SHARED int c; MSL_SHARED_END(c); MSL_SHARED_TOTAL(sizeof(a) + sizeof(b) + sizeof(c)); } }"""
    )
    assert body.count("\n") == source.count("\n")
    assert "threadgroup msl_shared_a& a = *(threadgroup msl_shared_a*)0;" in rewrite(source, "strict").body


def test_kernels_and_their_arguments() -> None:
    (kernel,) = rewrite(
        """# 1 "file.metal"
        namespace n {
        [[max_total_threads_per_threadgroup(64)]]
        kernel void k(device float* a, constant int& second [[buffer(0)]], uint i [[thread_position_in_grid]],
                      threadgroup float* s [[threadgroup(1)]], device float* b) {}
        }"""
    ).kernels
    assert (kernel.name, kernel.function, kernel.max_threads) == ("k", "n::k", 64)
    assert kernel.location == Location("file.metal", 3)
    assert [(a.kind, a.index, a.name) for a in kernel.arguments] == [
        ("buffer", 1, "a"),
        ("buffer", 0, "second"),
        ("builtin", -1, "i"),
        ("threadgroup", 1, "s"),
        ("buffer", 2, "b"),
    ]


def test_instantiation_of_an_unknown_template() -> None:
    (problem,) = rewrite('template [[host_name("a")]] kernel void nowhere<float>(device float*);').diagnostics
    assert problem.rule == "no-such-kernel"
    assert "nowhere<float>" in problem.message


def test_clang_messages_lead_to_the_metal_source() -> None:
    sources = {"a.metal": ["float f() {", "  return twice(y);", "}"]}
    messages = "\n".join(
        [
            "a.metal:2:40: error: use of undeclared identifier 'y'",
            "/shim/math.h:5:1: error: no member named 'v' in '_Float16'",
            "a.metal:2:3: note: in instantiation of function template specialization 'g<unsigned int>' requested here",
            "a.metal:3:1: warning: something [-Wparentheses]",
            "1 warning and 2 errors generated.",
        ]
    )
    diagnostics = list(parse_clang(messages, sources))
    assert diagnostics == [
        Diagnostic("a.metal", 2, 16, "error", "use of undeclared identifier 'y'", "compile"),
        Diagnostic("a.metal", 2, 0, "error", "no member named 'v' in 'half'", "compile"),
        Diagnostic("a.metal", 3, 1, "warning", "something", "parentheses"),
    ]
    assert format_report(diagnostics[:1], sources).split("\n") == [
        "a.metal:2:16: error: use of undeclared identifier 'y'",
        "      return twice(y);",
        "                   ^",
    ]


def test_embedding_takes_each_header_once_and_marks_lines(tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    (folder / "a.h").write_text('#pragma once\n#include "b.h"\nint a;')
    (folder / "b.h").write_text("int b;")
    embedded = embed('#include "a.h"\n#include <b.h>\n#include <metal_stdlib>\nint c;', "main", [folder])
    tokens = Tokens.of(embedded.text.replace("#include <metal_stdlib>", ""))
    places = tokens.locate(list(range(len(tokens.text))))
    names = {text: places[i] for i, text in enumerate(tokens.text) if text in "abc" and text}
    assert names == {"b": Location("b.h", 1), "a": Location("a.h", 3), "c": Location("main", 4)}
    assert "#include <metal_stdlib>" in embedded.text
    assert set(embedded.lines) == {"main", "a.h", "b.h"}


def test_an_index_is_a_constant_expression_of_enumerators() -> None:
    source = (
        "enum Index { kIn, kOut = 4, kMemory }; constant uint last = kMemory + 0x2u; typedef threadgroup int Memory;"
        " [[kernel, max_total_threads_per_threadgroup(kOut << 4)]] void k(device float* a [[buffer(Index::kOut)]],"
        " device float* b [[buffer(last)]], Memory* c [[threadgroup(kMemory)]], device int* d [[buffer(N)]]) {}"
    )
    (kernel,), (error,) = rewrite(source).kernels, rewrite(source).diagnostics
    assert ([(a.kind, a.index) for a in kernel.arguments], kernel.max_threads) == (
        [("buffer", 4), ("buffer", 7), ("threadgroup", 5)],
        64,
    )
    assert "[[buffer(N)]] on parameter 'd'" in error.message
