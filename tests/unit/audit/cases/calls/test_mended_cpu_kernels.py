"""The CPU's kernels that are replaced because they are not sound."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from mpsmith.audit.cases.calls.cpu_kernels import register

REGISTERS = "from mpsmith.audit.cases.calls.cpu_kernels import register; register()"


def test_a_user_sees_no_warning_of_replaced_kernels() -> None:
    done = subprocess.run([sys.executable, "-c", REGISTERS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_batch_norm_into_given_moments_takes_the_mean_of_an_input_of_any_strides() -> None:
    register()
    x = torch.tensor([[1.0, 5.0], [3.0, 9.0]]).t()  # channels of (1, 5) and (3, 9)
    batch_norm = torch.ops.aten._native_batch_norm_legit.no_stats_out
    given = [torch.full(size, 7.0) for size in ((2, 2), (2,), (2,))]
    result, mean, _ = batch_norm(x, None, None, True, 0.1, 0.0, out=given[0], save_mean=given[1], save_invstd=given[2])
    assert mean.tolist() == [3.0, 6.0]
    assert result.sign().tolist() == [[-1.0, -1.0], [1.0, 1.0]]
    given = [torch.full(size, 7.0) for size in ((2, 2), (2,), (2,))]
    names = dict(zip(("out", "save_mean", "save_invstd"), given, strict=True), reserve=torch.empty(0).byte())
    torch.ops.aten._batch_norm_with_update.out(x, None, None, torch.zeros(2), torch.ones(2), 0.1, 0.0, **names)
    assert given[1].tolist() == [3.0, 6.0]


def test_batch_norm_of_rows_into_channels_last_keeps_the_places_of_elements() -> None:
    register()
    x = torch.arange(24.0).view(2, 3, 2, 2)
    out = torch.empty_like(x, memory_format=torch.channels_last)
    moments = {"save_mean": torch.zeros(3), "save_invstd": torch.zeros(3)}
    torch.ops.aten.native_batch_norm.out(x, None, None, None, None, True, 0.1, 1e-5, out=out, **moments)
    assert out.is_contiguous(memory_format=torch.channels_last)
    assert torch.allclose(out, torch.nn.functional.batch_norm(x, None, None, training=True))


@pytest.mark.parametrize(
    ("operator", "shape", "args"),
    [
        ("avg_pool3d.out", (1, 2, 3, 3, 3), ([2], [1])),
        ("avg_pool3d_backward.grad_input", (1, 2, 2, 2, 2), (torch.ones(1, 2, 3, 3, 3), 2, 1, 0, False, True, None)),
        ("im2col.out", (1, 2, 3, 3), ([2, 2], [1, 1], [0, 0], [1, 1])),
        ("upsample_bicubic2d_backward.grad_input", (1, 2, 3, 3), ([3, 3], [1, 2, 2, 2], False, None, None)),
    ],
)
def test_an_output_of_other_strides_has_each_element_in_its_place(
    operator: str, shape: tuple[int, ...], args: tuple[object, ...]
) -> None:
    register()
    name, _, form = operator.partition(".")
    overloads, x = getattr(torch.ops.aten, name), torch.randn(shape)
    result = overloads(x, *args)
    out = torch.empty(result.shape[::-1]).permute(*reversed(range(result.dim())))
    getattr(overloads, form)(x, *args, **{form: out})
    assert torch.equal(out, result)


def test_weight_norm_backward_reads_the_strides_of_the_gradient() -> None:
    register()
    backward = torch.ops.aten._weight_norm_interface_backward
    grad, v, g = torch.arange(6.0).view(2, 3), torch.arange(1.0, 7.0).view(2, 3), torch.tensor([[2.0], [3.0]])
    norms = v.norm(dim=1, keepdim=True)
    expected = backward(grad, v, g, norms, 0)
    actual = backward(torch.stack([grad, grad + 9], -1)[..., 0], v, g, norms, 0)
    assert all(torch.equal(mine, right) for mine, right in zip(actual, expected, strict=True))


@pytest.mark.parametrize("mode", ["reflection", "replication"])
def test_padding_keeps_the_memory_between_output_elements(mode: str) -> None:
    register()
    pad, x = getattr(torch.ops.aten, f"{mode}_pad2d"), torch.arange(4.0).view(1, 1, 2, 2)
    memory = torch.full((1, 1, 3, 6), 9.0)
    pad.out(x, [1, 0, 1, 0], out=memory[..., ::2])
    assert torch.equal(memory[..., ::2], pad(x, [1, 0, 1, 0]))
    assert memory[..., 1::2].eq(9).all()
    assert pad.out(x, [1, 0, 1, 0], out=torch.empty(0)).shape == (1, 1, 3, 3)
