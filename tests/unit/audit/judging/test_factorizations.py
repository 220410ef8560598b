"""Vectors are the CPU's up to what leaves them undetermined; factors that do not multiply to the matrix are wrong."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.audit.judging import judge
from mpsmith.audit.judging.factorizations import are_undetermined, is_another_factorization, with_cpu_rounding_errors
from mpsmith.audit.model.case import Case

MATRIX = torch.randn(2, 6, 6, generator=torch.Generator().manual_seed(1))
SYMMETRIC = MATRIX + MATRIX.mT
HERMITIAN = torch.complex(SYMMETRIC, MATRIX - MATRIX.mT)
TURN = torch.polar(torch.ones(6), torch.arange(6.0))


def other_phases(vectors: Tensor) -> Tensor:
    return vectors * (TURN if vectors.is_complex() else TURN.real.sign())


SINGULAR = torch.cat([MATRIX[0, :, :4], MATRIX[0, :, :2] @ MATRIX[1, :2, :2]], -1)


class TestOrthogonalTriangular:
    @pytest.mark.parametrize("mode", ["reduced", "complete"])
    def test_another_basis_beyond_the_rank(self, mode: str) -> None:
        q, r = torch.linalg.qr(SINGULAR, mode)
        other = torch.cat([q[:, :4], q[:, 4:].flip(-1)], -1)
        case = Case(torch.linalg.qr, (SINGULAR, mode))
        # The last two rows of R are rounding errors, so an exchange leaves Q R as it is.
        assert is_another_factorization(case, [other, r.triu()], [q, r])
        assert not is_another_factorization(case, [torch.cat([other[:, :5], other[:, 4:5]], -1), r], [q, r])
        assert not is_another_factorization(case, [other, r * 1.001], [q, r])

    def test_r_alone(self) -> None:
        q, r = torch.linalg.qr(SINGULAR, "r")
        case = Case(torch.linalg.qr, (SINGULAR, "r"))
        assert is_another_factorization(case, [q, torch.cat([r[:4], -r[4:]])], [q, r])
        assert not is_another_factorization(case, [q, r.flip(-1)], [q, r])

    @pytest.mark.parametrize(
        ("matrix", "verdict"), [(torch.diag(torch.tensor([1.0, 0])), "passed"), (MATRIX[0], "wrong")]
    )
    def test_gradients_beyond_the_rank_are_not_compared(self, played: Any, matrix: Tensor, verdict: str) -> None:
        def without_gradient(x: Tensor) -> Any:
            return tuple(factor.detach() + 0 * x.sum() for factor in torch.linalg.qr(x))

        call = played.does(lambda x: tuple(torch.linalg.qr(x)), without_gradient)
        case = Case(call, (matrix.clone().requires_grad_(),), entry="linalg.qr", differentiable=True)
        assert judge.judge(case, played, 0, "example").verdict == verdict

    def test_r_that_is_not_triangular(self) -> None:
        q, r = torch.linalg.qr(SINGULAR)
        exchanged = q.flip(-1), r.flip(-2)
        assert not is_another_factorization(Case(torch.linalg.qr, (SINGULAR,)), exchanged, [q, r])


class TestEigenvectors:
    @pytest.mark.parametrize("matrix", [SYMMETRIC, HERMITIAN])
    @pytest.mark.parametrize("uplo", ["L", "U"])
    def test_of_other_phases(self, matrix: Tensor, uplo: str) -> None:
        values, vectors = torch.linalg.eigh(matrix, uplo)
        case = Case(torch.linalg.eigh, (matrix,), {"UPLO": uplo})
        assert is_another_factorization(case, [values, other_phases(vectors)], [values, vectors])

    def test_only_one_triangle_counts(self) -> None:
        values, vectors = torch.linalg.eigh(MATRIX, "U")
        outputs = [values, -vectors], [values, vectors]
        assert is_another_factorization(Case(torch.linalg.eigh, (MATRIX, "U")), *outputs)
        assert not is_another_factorization(Case(torch.linalg.eigh, (MATRIX, "L")), [values, -vectors], [values, TURN])

    def test_given_outputs_that_are_returned_twice(self) -> None:
        values, vectors = torch.linalg.eigh(SYMMETRIC)
        case, cpus = Case(torch.linalg.eigh, (SYMMETRIC,)), [values, vectors]
        assert is_another_factorization(case, [values, -vectors] * 2, cpus * 2)
        assert not is_another_factorization(case, [values, -vectors, values, vectors + 1], cpus * 2)
        assert is_another_factorization(case, [values, -vectors, True], [*cpus, True])

    def test_given_outputs_of_calls_in_a_row(self) -> None:
        left, values, right = torch.linalg.svd(MATRIX)
        case, cpus = Case(lambda x: x, (MATRIX,), entry="linalg_svd.U"), [left, values, right]
        assert is_another_factorization(case, [-left, values, -right] * 2, cpus * 2)
        assert not is_another_factorization(case, [-left, values, right] * 2, cpus * 2)

    def test_calls_in_a_row_of_several_matrices(self) -> None:
        calls = [((matrix,), {"UPLO": uplo}) for matrix in (SYMMETRIC[0], MATRIX[0], HERMITIAN[1]) for uplo in "LU"]
        pairs = [torch.linalg.eigh(*args, **kwargs) for args, kwargs in calls]
        case, cpus = Case(list, (calls,), entry="linalg_eigh"), [factor for pair in pairs for factor in pair]
        mine = [factor if factor.dim() < 2 else -factor for factor in cpus]
        assert is_another_factorization(case, mine, cpus)
        assert not is_another_factorization(case, [*mine[:4], *mine[6:8], *mine[6:]], cpus)

    def test_a_value_beyond_the_largest_number(self) -> None:
        values, vectors = torch.linalg.eigh(torch.full((6, 6), 3e38))
        case = Case(torch.linalg.eigh, (torch.full((6, 6), 3e38),))
        other = torch.cat([vectors[:, :5].flip(-1), -vectors[:, 5:]], -1)
        assert values[-1].isinf()
        assert is_another_factorization(case, [values, other], [values, vectors])
        assert not is_another_factorization(case, [values, vectors.flip(-1)], [values, vectors])

    def test_another_basis_of_equal_singular_values(self) -> None:
        matrix = torch.eye(6)
        values, vectors = torch.linalg.eigh(matrix)
        other = torch.linalg.qr(MATRIX[0]).Q
        assert is_another_factorization(Case(torch.linalg.eigh, (matrix,)), [values, other], [values, vectors])

    @pytest.mark.parametrize("factor", [1.001, torch.nan])
    def test_vectors_that_are_not_of_length_1(self, factor: float) -> None:
        values, vectors = torch.linalg.eigh(SYMMETRIC)
        wrong = [values, vectors * factor]
        assert not is_another_factorization(Case(torch.linalg.eigh, (SYMMETRIC,)), wrong, [values, vectors])

    def test_vectors_of_other_values(self) -> None:
        values, vectors = torch.linalg.eigh(SYMMETRIC)
        wrong = [values, vectors.flip(-1)]
        assert not is_another_factorization(Case(torch.linalg.eigh, (SYMMETRIC,)), wrong, [values, vectors])


class TestSingularVectors:
    @pytest.mark.parametrize("matrix", [MATRIX, MATRIX[:, :, :4], HERMITIAN[:, :4]])
    @pytest.mark.parametrize("full", [False, True])
    def test_of_other_phases(self, matrix: Tensor, full: bool) -> None:
        left, values, right = torch.linalg.svd(matrix, full_matrices=full)
        case, cpus = Case(torch.linalg.svd, (matrix, full)), [left, values, right]
        assert is_another_factorization(case, [-left, values, -right], cpus)
        assert not is_another_factorization(case, [-left, values, right], cpus)

    def test_calls_in_a_row_and_a_value_beyond_the_largest_number(self) -> None:
        huge = torch.full((5, 3), 3e38)
        calls = [torch.linalg.svd(matrix) for matrix in (MATRIX[0, :5, :3], huge, MATRIX[0, :3, :5])]
        case = Case(list, (([MATRIX[0, :5, :3]], [huge, True]), [MATRIX[0, :3, :5]]), entry="linalg_svd.U")
        cpus = [factor for factors in calls for factor in factors]
        mine = [factor if factor.dim() == 1 else -factor for factor in cpus]
        assert is_another_factorization(case, mine, cpus)
        assert not is_another_factorization(case, [*mine[:5], -mine[5], *mine[6:]], cpus)

    def test_svd_returns_the_right_ones_in_columns(self) -> None:
        left, values, right = torch.svd(HERMITIAN)
        case = Case(torch.svd, (HERMITIAN,))
        other = [other_phases(left), values, other_phases(right)]
        assert is_another_factorization(case, other, [left, values, right])
        assert not is_another_factorization(case, [left, values, other_phases(right)], [left, values, right])

    def test_given_outputs_and_the_memory_around_them(self) -> None:
        left, values, right = torch.svd(SYMMETRIC[:1])
        case, around = Case(torch.svd, (SYMMETRIC[:1],)), [torch.ones(7), torch.ones(2), torch.ones(7)]
        cpus, other = [left, values, right], [-left, values, -right]
        assert is_another_factorization(case, [*other, *other, *around], [*cpus, *cpus, *around])
        assert not is_another_factorization(case, [*other, -left, values, right, *around], [*cpus, *cpus, *around])
        assert not is_another_factorization(case, [*around, *other], [*around, *cpus])

    def test_outputs_in_the_order_of_their_names(self) -> None:
        left, values, right = torch.svd(SYMMETRIC[:1])
        case, cpus = Case(torch.svd, (SYMMETRIC[:1],)), [left, values, right, values, left, right]
        assert is_another_factorization(case, [-left, values, -right, values, -left, -right], cpus)
        assert not is_another_factorization(case, [-left, values, -right, values, -left, right], cpus)

    @pytest.mark.parametrize("form", ["out= exact", "inference_mode"])
    @pytest.mark.parametrize("entry", ["svd", "linalg.svd"])
    def test_a_call_that_a_form_wraps(self, entry: str, form: str) -> None:
        def call() -> None: ...

        call.__name__ = form
        left, values, right = torch.svd(SYMMETRIC)
        right = right if entry == "svd" else right.mH
        case = Case(call, (SYMMETRIC,), entry=entry)
        assert is_another_factorization(case, [-left, values, -right], [left, values, right])
        assert not is_another_factorization(case, [-left, values, right], [left, values, right])


@pytest.mark.parametrize(("matrix", "hermitian"), [(MATRIX, False), (HERMITIAN + 0.3j, False), (HERMITIAN, True)])
def test_factors_by_other_pivots(matrix: Tensor, hermitian: bool) -> None:
    case = Case(torch.linalg.ldl_factor_ex, (matrix,), {"hermitian": hermitian}, entry="linalg.ldl_factor_ex")
    factor, pivots, info = torch.linalg.ldl_factor_ex(matrix, hermitian=hermitian)
    plain = torch.stack([without_pivots(lower_half, hermitian) for lower_half in matrix])
    steps = torch.arange(1, 7, dtype=torch.int32).expand(2, 6)
    assert not torch.equal(pivots, steps)
    assert is_another_factorization(case, [plain, steps, info], [factor, pivots, info])
    assert not is_another_factorization(case, [plain, pivots, info], [factor, pivots, info])
    assert not is_another_factorization(case, [plain, steps - 1, info], [factor, pivots, info])
    assert not is_another_factorization(case, [plain, -steps, info], [factor, pivots, info])
    assert not is_another_factorization(case, [plain + 1e-4, steps, info], [factor, pivots, info])
    assert [are_undetermined([factor, pivots, info], position) for position in range(3)] == [True, True, False]


def without_pivots(matrix: Tensor, hermitian: bool) -> Tensor:
    """L and D of a matrix whose leading minors are not zero, in one."""
    factor = matrix.to(torch.complex128 if matrix.is_complex() else torch.float64)
    for k in range(len(factor)):
        column = factor[k + 1 :, k] / (factor[k, k].real if hermitian else factor[k, k])
        row = factor[k + 1 :, k].conj() if hermitian else factor[k + 1 :, k]
        factor[k + 1 :, k + 1 :] -= column[:, None] * row
        factor[k + 1 :, k] = column
    return factor.tril().to(matrix.dtype)


def test_values_that_are_rounding_errors_beside_the_largest() -> None:
    values, vectors = torch.tensor([[1e-7, 4e-3, torch.inf], [1e-7, 1e-5, 2.0]]), torch.eye(3).expand(2, 3, 3)
    case, cpus = Case(torch.linalg.eigh, (vectors,)), [values, vectors]
    mine = torch.tensor([[3.0, 1e30, torch.inf], [-2e-7, 1.1e-5, 2.0]])
    accepted = with_cpu_rounding_errors(case, 0, [mine, vectors], cpus)
    assert accepted is not None
    assert accepted.tolist() == torch.tensor([[1e-7, 4e-3, torch.inf], [1e-7, 1.1e-5, 2.0]]).tolist()
    assert with_cpu_rounding_errors(case, 1, [mine, vectors], cpus) is None
    assert with_cpu_rounding_errors(Case(torch.linalg.cholesky_ex, (vectors,)), 0, [mine, vectors], cpus) is None


@pytest.mark.parametrize("call", [torch.linalg.qr, torch.linalg.cholesky_ex])
def test_factors_that_are_determined(call: Any) -> None:
    q, r = torch.linalg.qr(SYMMETRIC)
    assert not is_another_factorization(Case(call, (SYMMETRIC,)), [-q, -r], [q, r])
