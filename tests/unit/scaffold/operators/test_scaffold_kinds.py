"""Which kind of kernel an operator gets."""

from __future__ import annotations

import pytest

from mpsmith.scaffold.operators.kinds import Kind, kind_of
from mpsmith.scaffold.operators.source import Source, source_of


@pytest.fixture(scope="module")
def source() -> Source:
    return source_of(None)


@pytest.mark.parametrize(
    ("operator", "kind"),
    [
        ("softshrink", Kind.UNARY),
        ("softshrink_backward", Kind.BINARY),
        ("heaviside", Kind.BINARY),
        ("addcmul", Kind.TERNARY),
        ("_pdist_forward", Kind.REDUCTION),
        ("sum", Kind.REDUCTION),
        ("cumsum", Kind.SCAN),
        ("logcumsumexp", Kind.SCAN),
        ("take", Kind.GATHER),
        ("index_select", Kind.GATHER),
        ("_jagged_to_padded_dense_forward", Kind.GATHER),
        ("adaptive_max_pool3d", Kind.POOLING),
        ("reflection_pad1d", Kind.POOLING),
        ("mode", Kind.SORT),
        ("topk", Kind.SORT),
        ("poisson", Kind.RANDOM),
        ("rrelu_with_noise", Kind.RANDOM),
        ("linalg_eig", Kind.LINALG),
        ("_scaled_mm", Kind.LINALG),
        ("_fused_adagrad_", Kind.FOREACH),
        ("_foreach_lerp_", Kind.FOREACH),
    ],
)
def test_kind(source: Source, operator: str, kind: Kind) -> None:
    assert kind_of(source.operator(operator)).kind is kind


def test_an_opinfo_decides_where_names_do_not(source: Source) -> None:
    operator = source.operator("special_ndtri")
    choice = kind_of(operator, "ReductionOpInfo")
    assert choice.kind is Kind.REDUCTION
    assert "ReductionOpInfo" in choice.because


def test_the_reason_is_told(source: Source) -> None:
    assert kind_of(source.operator("poisson")).because == "its name"
    assert "tensor" in kind_of(source.operator("special_ndtri")).because
