"""Modules, optimizers, data loading and transforms on the simulated device give what the CPU gives."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from mpsmith.simulator.device import loading as device

MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "perceptron": (lambda: nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2)), (4, 6)),
    "convolutions": (
        lambda: nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)),
        (3, 2, 6, 6),
    ),
    "grouped and dilated": (lambda: nn.Conv2d(4, 4, 3, groups=2, dilation=2, stride=2), (2, 4, 9, 9)),
    "one dimension": (lambda: nn.Sequential(nn.Conv1d(2, 3, 3), nn.ConvTranspose1d(3, 2, 3, stride=2)), (2, 2, 8)),
    "three dimensions": (lambda: nn.Sequential(nn.Conv3d(1, 2, 2), nn.AvgPool3d(2)), (2, 1, 5, 5, 5)),
    "transposed": (lambda: nn.ConvTranspose2d(2, 4, 3, stride=2, output_padding=1, groups=2, bias=True), (2, 2, 4, 4)),
    "without bias": (lambda: nn.ConvTranspose2d(2, 3, 2, bias=False), (2, 2, 4, 4)),
    "transformer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (2, 5, 8)),
    "group and instance norm": (lambda: nn.Sequential(nn.GroupNorm(2, 4), nn.InstanceNorm1d(4)), (2, 4, 6)),
    "rms norm": (lambda: nn.RMSNorm(6), (3, 6)),
    "upsampling": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), (1, 2, 3, 3)),
}


@pytest.mark.parametrize(("make", "shape"), MODELS.values(), ids=MODELS.keys())
def test_forward_backward_and_parameters(make: Callable[[], nn.Module], shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    on_cpu = make()
    on_mps = copy.deepcopy(on_cpu).to("mps")
    x = torch.rand(shape, requires_grad=True)
    y = x.detach().to("mps").requires_grad_()
    expected, got = on_cpu(x), on_mps(y)
    torch.testing.assert_close(got.cpu(), expected)
    expected.square().mean().backward()
    got.square().mean().backward()
    assert x.grad is not None
    torch.testing.assert_close(y.grad, x.grad, check_device=False)
    for mine, theirs in zip(on_mps.parameters(), on_cpu.parameters(), strict=True):
        assert mine.device.type == "mps"
        torch.testing.assert_close(mine.grad, theirs.grad, check_device=False, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"num_layers": 2, "bidirectional": True},
        {"num_layers": 2, "bidirectional": True, "batch_first": True, "bias": False},
        {"num_layers": 3, "dropout": 1.0},  # the layers above get zeros, whatever is drawn
    ],
)
@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers(layer: type[nn.RNNBase], options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    on_cpu = layer(3, 4, **options)
    on_mps = copy.deepcopy(on_cpu).to("mps")
    x = torch.rand(5, 2, 3, requires_grad=True)
    y = x.detach().to("mps").requires_grad_()
    expected, states = on_cpu(x)
    got, states_on_mps = on_mps(y)
    torch.testing.assert_close(got, expected, check_device=False)
    torch.testing.assert_close(states_on_mps, states, check_device=False)
    for result, last in ((expected, states), (got, states_on_mps)):
        parts = [result, *(last if isinstance(last, tuple) else [last])]
        torch.stack([part.square().sum().cpu() for part in parts]).sum().backward()
    torch.testing.assert_close(y.grad, x.grad, check_device=False)
    for mine, theirs in zip(on_mps.parameters(), on_cpu.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, check_device=False, rtol=1e-4, atol=1e-5)


def test_an_lstm_takes_the_operator_that_only_mps_has() -> None:
    layer = nn.LSTM(3, 4, num_layers=2, dropout=0.5).to("mps")
    before = torch.default_generator.get_state(), torch.mps.get_rng_state()
    device.drain_calls()
    output, _ = layer(torch.rand(5, 2, 3, device="mps"))
    output.sum().backward()
    calls = device.drain_calls()
    assert {calls[f"aten::{name}"].native for name in ("_lstm_mps", "lstm_mps_backward")} == {1}
    assert "aten::sigmoid" not in calls
    assert torch.equal(torch.default_generator.get_state(), before[0])
    assert not torch.equal(torch.mps.get_rng_state(), before[1])
    packed = nn.utils.rnn.pack_sequence([torch.rand(2, 3), torch.rand(1, 3)]).to("mps")
    layer(packed)
    assert "aten::_lstm_mps" not in device.drain_calls()


def test_an_lstm_of_complex_numbers_has_no_gradients() -> None:
    weights = [torch.rand(4, 2), torch.rand(4, 1)]
    x, states = torch.rand(3, 1, 2), [torch.zeros(1, 1, 1)] * 2

    def call(device: str) -> torch.Tensor:
        there = [[t.to(torch.complex64).to(device) for t in part] for part in ([x], states, weights)]
        return torch.lstm(there[0][0].requires_grad_(), *there[1:], False, 1, 0.0, True, False, False)[0]

    with torch.no_grad():
        torch.testing.assert_close(call("mps").cpu(), call("cpu"))
    with pytest.raises(
        RuntimeError, match="_lstm_mps does not support automatic differentiation for outputs with complex"
    ):
        call("mps")


def test_an_lstm_with_projections_is_refused() -> None:
    layer = nn.LSTM(3, 4, proj_size=2).to("mps")
    with pytest.raises(RuntimeError, match="LSTM with projections is not currently supported with MPS"):
        layer(torch.rand(5, 2, 3, device="mps"))


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("mask", ["none", "causal", "boolean", "additive"])
def test_attention(dropout: float, mask: str) -> None:
    torch.manual_seed(0)
    q = torch.rand(2, 3, 4, 8)
    masks = {"boolean": torch.ones(4, 4, dtype=torch.bool).tril(), "additive": torch.randn(4, 4)}
    attend = nn.functional.scaled_dot_product_attention
    chosen = masks.get(mask)
    on_mps = attend(
        *[q.to("mps")] * 3,
        attn_mask=None if chosen is None else chosen.to("mps"),
        dropout_p=dropout,
        is_causal=mask == "causal",
    )
    if dropout == 0.0:
        expected = attend(q, q, q, attn_mask=chosen, is_causal=mask == "causal")
        torch.testing.assert_close(on_mps.cpu(), expected, rtol=1e-4, atol=1e-5)
    else:
        assert on_mps.shape == q.shape


def test_attention_with_fewer_key_heads() -> None:
    q, kv = torch.rand(2, 4, 5, 8), torch.rand(2, 2, 5, 8)
    attend = nn.functional.scaled_dot_product_attention
    on_mps = attend(q.to("mps"), kv.to("mps"), kv.to("mps"), enable_gqa=True)
    torch.testing.assert_close(on_mps.cpu(), attend(q, kv, kv, enable_gqa=True), rtol=1e-4, atol=1e-5)


OPTIMIZERS: dict[str, Callable[[list[nn.Parameter]], torch.optim.Optimizer]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "SGD fused": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, fused=True),
    "Adam": torch.optim.Adam,
    "Adam foreach": lambda p: torch.optim.Adam(p, foreach=True),
    "Adam fused": lambda p: torch.optim.Adam(p, fused=True),
    "AdamW amsgrad": lambda p: torch.optim.AdamW(p, amsgrad=True),
    "Adagrad": torch.optim.Adagrad,
    "Adadelta": torch.optim.Adadelta,
    "Adamax": torch.optim.Adamax,
    "NAdam": torch.optim.NAdam,
    "RAdam": torch.optim.RAdam,
    "RMSprop": torch.optim.RMSprop,
    "Rprop": torch.optim.Rprop,
    "ASGD": torch.optim.ASGD,
}


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
def test_optimizers_take_the_same_steps(make: Callable[[list[nn.Parameter]], torch.optim.Optimizer]) -> None:
    torch.manual_seed(0)
    on_cpu = nn.Linear(3, 2)
    on_mps = copy.deepcopy(on_cpu).to("mps")
    x = torch.rand(5, 3)
    for model in (on_cpu, on_mps):
        optimizer = make(list(model.parameters()))
        for _ in range(3):
            optimizer.zero_grad()
            model(x.to(model.weight.device)).square().sum().backward()
            optimizer.step()
    torch.testing.assert_close(on_mps.weight, on_cpu.weight, check_device=False)
    state = optimizer.state_dict()["state"].get(0, {}).values()
    assert all(value.device.type == "mps" for value in state if isinstance(value, torch.Tensor) and value.dim())


def test_a_gradient_scaler_skips_a_step_with_infinite_gradients() -> None:
    model = nn.Linear(2, 1).to("mps")
    before = model.weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("mps", init_scale=4.0)
    scaler.scale(model(torch.full((1, 2), torch.inf, device="mps")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(model.weight, before)
    assert scaler.get_scale() == 2.0


@pytest.mark.parametrize("workers", [0, 1])
def test_batches_of_a_data_loader_go_to_the_device(workers: int) -> None:
    data = TensorDataset(torch.arange(10.0).view(5, 2), torch.arange(5))
    loader = DataLoader(data, batch_size=2, num_workers=workers)
    rows = torch.cat([x.to("mps", non_blocking=True) for x, _ in loader])
    assert rows.tolist() == data.tensors[0].tolist()


def test_clipping_accumulating_and_freezing() -> None:
    model = nn.Linear(3, 3).to("mps")
    model.weight.requires_grad_(False)
    for _ in range(2):
        model(torch.ones(2, 3, device="mps")).sum().backward()
    assert model.bias.grad is not None
    assert model.bias.grad.tolist() == [4.0] * 3
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    assert model.bias.grad.norm().item() == pytest.approx(1.0, abs=1e-5)


def test_transforms_of_functions() -> None:
    x = torch.rand(4, 3)
    y = x.to("mps")

    def f(row: torch.Tensor) -> torch.Tensor:
        return (row.sin() * row).sum()

    for transform in (torch.func.grad(f), torch.func.vmap(f, in_dims=-1), torch.func.vmap(torch.func.grad(f))):
        torch.testing.assert_close(transform(y).cpu(), transform(x))
    value, tangent = torch.func.jvp(f, (y[0],), (torch.ones(3, device="mps"),))
    expected, expected_tangent = torch.func.jvp(f, (x[0],), (torch.ones(3),))
    torch.testing.assert_close((value.cpu(), tangent.cpu()), (expected, expected_tangent))


def test_complex_gradients_are_conjugated() -> None:
    grads = {}
    for target in ("cpu", "mps"):
        torch.manual_seed(0)
        x, w = (torch.rand(3, 3, dtype=torch.complex64).to(target).requires_grad_() for _ in range(2))
        nn.functional.linear(x, w).abs().sum().backward()
        grads[target] = [t.grad.cpu() for t in (x, w) if t.grad is not None]
    torch.testing.assert_close(grads["mps"], grads["cpu"])


def test_second_derivatives() -> None:
    x = torch.tensor([2.0], device="mps", requires_grad=True)
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert (first.item(), second.item()) == (12.0, 12.0)


def test_inference_mode_and_checkpointing() -> None:
    model = nn.Linear(3, 3).to("mps")
    x = torch.ones(2, 3, device="mps", requires_grad=True)
    with torch.inference_mode():
        y = model(x)
        y.add_(1)
    assert y.is_inference()
    torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False).sum().backward()
    assert x.grad is not None


def test_tracing_scripting_and_exporting() -> None:
    class Doubled(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x) * 2

    x = torch.tensor([-1.0, 3.0], device="mps")
    exported = torch.export.export(Doubled(), (x,))
    for compiled in (torch.jit.trace(Doubled(), x), exported.module(), torch.compile(Doubled(), backend="aot_eager")):
        assert compiled(x).tolist() == [0, 6]


def test_a_custom_operator_for_mps() -> None:
    @torch.library.custom_op("mpsmith_test::thrice", mutates_args=(), device_types="mps")
    def thrice(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    assert thrice(torch.ones(2, device="mps")).tolist() == [3, 3]
    with pytest.raises(NotImplementedError):
        thrice(torch.ones(2))
