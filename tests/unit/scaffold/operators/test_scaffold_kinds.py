"""Which kind of kernel an operator gets."""

from __future__ import annotations

import pytest

from mpsmith.scaffold.operators.kinds import KernelKind, kind_of
from mpsmith.scaffold.operators.source import Source, source_of


@pytest.fixture(scope="module")
def source() -> Source:
    return source_of(None)


@pytest.mark.parametrize(
    ("operator", "kind"),
    [
        ("softshrink", KernelKind.UNARY),
        ("softshrink_backward", KernelKind.BINARY),
        ("heaviside", KernelKind.BINARY),
        ("addcmul", KernelKind.TERNARY),
        ("_pdist_forward", KernelKind.REDUCTION),
        ("sum", KernelKind.REDUCTION),
        ("cumsum", KernelKind.SCAN),
        ("logcumsumexp", KernelKind.SCAN),
        ("take", KernelKind.GATHER),
        ("index_select", KernelKind.GATHER),
        ("_jagged_to_padded_dense_forward", KernelKind.GATHER),
        ("adaptive_max_pool3d", KernelKind.POOLING),
        ("reflection_pad1d", KernelKind.POOLING),
        ("mode", KernelKind.SORT),
        ("topk", KernelKind.SORT),
        ("poisson", KernelKind.RANDOM),
        ("rrelu_with_noise", KernelKind.RANDOM),
        ("linalg_eig", KernelKind.LINALG),
        ("_scaled_mm", KernelKind.LINALG),
        ("_fused_adagrad_", KernelKind.FOREACH),
        ("_foreach_lerp_", KernelKind.FOREACH),
    ],
)
def test_kind(source: Source, operator: str, kind: KernelKind) -> None:
    assert kind_of(source.operator(operator)).kind is kind


def test_an_opinfo_decides_where_names_do_not(source: Source) -> None:
    operator = source.operator("special_ndtri")
    choice = kind_of(operator, "ReductionOpInfo")
    assert choice.kind is KernelKind.REDUCTION
    assert "ReductionOpInfo" in choice.because


def test_the_reason(source: Source) -> None:
    assert kind_of(source.operator("poisson")).because == "its name"
    assert "tensor" in kind_of(source.operator("special_ndtri")).because
