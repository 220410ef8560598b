"""Calls of linear algebra that torch's own kernels compute on the CPU: our kernels run exactly these (torch 2.15)."""

from __future__ import annotations

import pytest
import torch

from mpsmith.kernels.runtime.native_limits import eigh_on_cpu, svd_on_cpu

from ..conftest import FreshPython


@pytest.mark.parametrize(
    ("shape", "dtype", "expected"),
    [
        ((3, 3), torch.float32, True),
        ((90, 91), torch.float32, True),  # 8,190 elements: a small batch
        ((64, 128), torch.float32, False),  # 8,192 elements, 32 KB
        ((91, 91), torch.float32, True),  # above 32 KB
        ((64, 65), torch.complex64, True),
        ((2, 64, 64), torch.complex64, False),
        ((32, 16, 16), torch.float32, False),
        ((31, 16, 16), torch.float32, True),
        ((3, 3), torch.float16, False),  # refused by torch
        ((0, 3), torch.float32, False),
        ((3,), torch.float32, False),
    ],
)
def test_limits_of_svd(shape: tuple[int, ...], dtype: torch.dtype, expected: bool) -> None:
    x = torch.empty(shape, dtype=dtype, device="meta")
    assert svd_on_cpu(x) == expected
    assert not svd_on_cpu(x, driver="gesvd")


@pytest.mark.parametrize(
    ("shape", "dtype", "expected"),
    [
        ((3, 3), torch.float32, True),
        ((3, 64, 64), torch.float32, False),  # 12,288 elements; matrix and vectors take 32 KB
        ((2, 64, 64), torch.float32, True),
        ((65, 65), torch.float32, True),
        ((100, 65, 65), torch.float32, True),
        ((13, 45, 45), torch.complex64, False),
        ((7, 46, 46), torch.complex64, True),
        ((0, 3, 3), torch.float32, False),
    ],
)
def test_limits_of_eigh(shape: tuple[int, ...], dtype: torch.dtype, expected: bool) -> None:
    assert eigh_on_cpu(torch.empty(shape, dtype=dtype, device="meta")) == expected


def test_kernels_replace_these_calls_alone(fresh_python: FreshPython) -> None:
    done = fresh_python(
        """
        import json
        from mpsmith.kernels.runtime.registration import counting
        overloads = [f"aten::_linalg_{name}" for name in ("svd", "svd.U", "eigh", "eigh.eigenvalues")]
        assert set(overloads) <= set(kernels.registered())
        shapes = ((5, 5), (2, 5, 3), (33, 16, 16), (60, 60), (49, 49))
        with counting("_linalg_svd", "_linalg_eigh") as calls:
            for shape in shapes:
                a = torch.randn(shape)
                values = torch.linalg.svd(a.to("mps"), full_matrices=False).S.cpu()
                torch.testing.assert_close(values, torch.linalg.svdvals(a), rtol=1e-4, atol=1e-4)
                out = [torch.empty(0, device="mps") for _ in range(3)]
                torch.linalg.svd(a.to("mps"), full_matrices=False, out=out)
                assert [x.stride() for x in out] == [x.stride() for x in torch.linalg.svd(a, full_matrices=False)]
                if shape[-1] == shape[-2]:
                    symmetric = a + a.mT
                    found = torch.linalg.eigh(symmetric.to("mps")).eigenvalues.cpu()
                    torch.testing.assert_close(found, torch.linalg.eigvalsh(symmetric), rtol=1e-4, atol=1e-4)
            a = torch.randn(4, 3, requires_grad=True)
            b = a.detach().to("mps").requires_grad_()
            torch.linalg.svdvals(a).sum().backward()
            torch.linalg.svdvals(b).sum().backward()
            torch.testing.assert_close(b.grad.cpu(), a.grad)
        print(calls["aten::_linalg_svd"], calls["aten::_linalg_eigh"])
        kernels.disable()
        torch.linalg.svd(torch.randn(5, 5, device="mps"))
        print(calls["aten::_linalg_svd"])
        """,
        kernels_on="2.15.0",
    )
    # Four shapes and a gradient; all square ones but the batch of 33, of which 8,448 elements are still few for eigh.
    assert done.stdout.split()[-3:] == ["5", "4", "5"]
