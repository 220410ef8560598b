"""`torch.cholesky`, which lost its kernel on mps in torch 2.14."""

from __future__ import annotations

from ..conftest import FreshPython


def test_cholesky_on_2_15(fresh_python: FreshPython) -> None:
    done = fresh_python(
        """
        from mpsmith.kernels.runtime.registration import counting
        torch.manual_seed(0)
        a = torch.randn(2, 4, 4)
        a = a @ a.mT + torch.eye(4)
        with counting("cholesky") as calls:
            for upper in (False, True):
                mine, other = (a.to(place, copy=True).requires_grad_() for place in ("mps", "cpu"))
                found, expected = torch.cholesky(mine, upper), torch.cholesky(other, upper)
                torch.testing.assert_close(found.cpu(), expected)
                found.sum().backward(), expected.sum().backward()
                torch.testing.assert_close(mine.grad.cpu(), other.grad)
            assert torch.cholesky(a.to("mps"), out=torch.empty(0, device="mps")).shape == (2, 4, 4)
            try:
                torch.cholesky(-a[0].to("mps"))
            except torch.linalg.LinAlgError as error:
                print("order 1 is not positive-definite" in str(error))
        print(sorted(calls.items()))
        """,
        kernels_on="2.15.0",
    )
    assert done.stdout.split("\n")[-3:] == ["True", "[('aten::cholesky', 3), ('aten::cholesky.out', 1)]", ""]
