"""The stand-in's LSTM, Fourier transforms and random tensors, against torch on the CPU."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from support.graph_calls import DATA_TYPES, Graph
from support.objc_messages import MessageError, Ref, Single, class_named, send

pytestmark = pytest.mark.network  # Metal's declarations are fetched: mpsmith check --setup

FLOAT, INT64 = DATA_TYPES[torch.float32], DATA_TYPES[torch.int64]


def lstm_description(bidirectional: bool) -> Ref:
    descriptor = Ref(send(class_named("MPSGraphLSTMDescriptor"), "descriptor"))
    for name, value in {"Bidirectional": bidirectional, "ProduceCell": True, "Training": True}.items():
        send(descriptor, f"set{name}:", value)
    return descriptor


@pytest.mark.parametrize("bidirectional", [False, True])
def test_an_lstm_and_its_gradients(bidirectional: bool) -> None:
    steps, batch, size, hidden = 4, 2, 3, 5
    directions = 2 if bidirectional else 1
    layer = torch.nn.LSTM(size, hidden, bidirectional=bidirectional)
    with torch.no_grad():  # torch has two biases, whose sum is MPSGraph's
        for suffix in ("", "_reverse")[:directions]:
            getattr(layer, f"bias_hh_l0{suffix}").zero_()
    x = torch.randn(steps, batch, size, requires_grad=True)
    state, cell = (torch.randn(directions, batch, hidden, requires_grad=True) for _ in range(2))
    outputs, (last_state, last_cell) = layer(x, (state, cell))
    gs = [torch.randn_like(t) for t in (outputs, last_state, last_cell)]
    names = [
        f"{kind}_l0{suffix}"
        for kind in ("weight_hh", "weight_ih", "bias_ih")
        for suffix in ("", "_reverse")[:directions]
    ]
    parameters = {name: getattr(layer, name) for name in names}
    gradients = torch.autograd.grad((outputs, last_state, last_cell), (x, *parameters.values(), state, cell), gs)
    wanted = dict(zip(("x", *names, "state", "cell"), gradients, strict=True))

    def joined(values: dict[str, Tensor], kind: str) -> Tensor:
        parts = [values[name].detach() for name in names if name.startswith(kind)]
        return parts[0] if directions == 1 else (torch.stack(parts) if kind == "weight_hh" else torch.cat(parts))

    def beside(t: Tensor) -> Tensor:  # [batch, directions * hidden]
        return t.detach().movedim(0, 1).flatten(1)

    graph = Graph()
    fed = [graph.feed(t) for t in (x.detach(), joined(parameters, "weight_hh"), joined(parameters, "weight_ih"))]
    fed += [graph.feed(t) for t in (joined(parameters, "bias_ih"), beside(state), beside(cell))]
    descriptor = lstm_description(bidirectional)
    selector = "LSTMWithSourceTensor:recurrentWeight:inputWeight:bias:initState:initCell:descriptor:name:"
    forward = graph.several(selector, *fed, descriptor, None)
    incoming = [graph.feed(t) for t in (gs[0], beside(gs[1]), beside(gs[2]))]
    selector = (
        "LSTMGradientsWithSourceTensor:recurrentWeight:sourceGradient:zState:cellOutputFwd:stateGradient:cellGradient:"
        "inputWeight:bias:initState:initCell:mask:peephole:descriptor:name:"
    )
    backward = graph.several(
        selector,
        *(
            fed[0],
            fed[1],
            incoming[0],
            forward[2],
            forward[1],
            incoming[1],
            incoming[2],
            fed[2],
            fed[3],
            fed[4],
            fed[5],
        ),
        *(None, None, descriptor, None),
    )
    results = graph.run(forward[0], *backward)
    expected = [outputs.detach(), wanted["x"], joined(wanted, "weight_hh"), joined(wanted, "weight_ih")]
    bias = joined(wanted, "bias_ih")
    expected += [bias.view(1, 1, -1) if bidirectional else bias, beside(wanted["state"]), beside(wanted["cell"])]
    assert len(results) == len(expected)
    for result, value in zip(results, expected, strict=True):
        torch.testing.assert_close(result, value, rtol=1e-4, atol=1e-5)


def test_an_lstm_that_torch_does_not_have_is_refused() -> None:
    graph = Graph()
    descriptor = lstm_description(False)
    send(descriptor, "setForgetGateLast:", True)
    selector = "LSTMWithSourceTensor:recurrentWeight:inputWeight:bias:initState:initCell:descriptor:name:"
    fed = graph.feed(torch.ones(1, 1, 4)), graph.feed(torch.ones(4, 1))
    with pytest.raises(MessageError, match="is not simulated"):
        graph(selector, *fed, None, None, None, None, descriptor, None)


# MPSGraphFFTScalingMode, and torch's normalization forwards and backwards.
SCALINGS = {0: ("backward", "forward"), 1: ("forward", "backward"), 2: ("ortho", "ortho")}


@pytest.mark.parametrize("scaling", SCALINGS)
def test_fourier_transforms(scaling: int) -> None:
    z, x = torch.randn(2, 4, 6, dtype=torch.complex64), torch.randn(2, 4, 7)
    halves = torch.fft.rfftn(x, dim=(1, 2))
    norm, inverse_norm = SCALINGS[scaling]

    def described(**flags: bool) -> Ref:
        descriptor = Ref(send(class_named("MPSGraphFFTDescriptor"), "descriptor"))
        send(descriptor, "setScalingMode:", scaling)
        for name, value in flags.items():
            send(descriptor, f"set{name}:", value)
        return descriptor

    graph = Graph()
    axes = [1, 2]
    nodes = [
        graph("fastFourierTransformWithTensor:axes:descriptor:name:", graph.feed(z), axes, described(), None),
        graph(
            "fastFourierTransformWithTensor:axes:descriptor:name:", graph.feed(z), axes, described(Inverse=True), None
        ),
        graph("realToHermiteanFFTWithTensor:axes:descriptor:name:", graph.feed(x), axes, described(), None),
        graph(
            "HermiteanToRealFFTWithTensor:axes:descriptor:name:",
            *(graph.feed(halves), axes, described(Inverse=True, RoundToOddHermitean=True), None),
        ),
    ]
    results = graph.run(*nodes)
    dims = (1, 2)
    torch.testing.assert_close(results[0], torch.fft.fftn(z, dim=dims, norm=norm))
    torch.testing.assert_close(results[1], torch.fft.ifftn(z, dim=dims, norm=inverse_norm))
    torch.testing.assert_close(results[2], torch.fft.rfftn(x, dim=dims, norm=norm))
    torch.testing.assert_close(results[3], torch.fft.irfftn(halves, (4, 7), dim=dims, norm=inverse_norm))


def distribution(kind: int, data_type: int) -> Ref:
    return Ref(send(class_named("MPSGraphRandomOpDescriptor"), "descriptorWithDistribution:dataType:", kind, data_type))


def drawn(descriptor: Ref, seed: int) -> list[Tensor]:
    graph = Graph()
    state = graph.feed(torch.full((7,), seed, dtype=torch.int32))
    shape = graph("shapeOfTensor:name:", graph.feed(torch.empty(100, 50)), None)
    by_list = graph.several("randomTensorWithShape:descriptor:stateTensor:name:", [100, 50], descriptor, state, None)
    by_tensor = graph.several(
        "randomTensorWithShapeTensor:descriptor:stateTensor:name:", shape, descriptor, state, None
    )
    return graph.run(*by_list, *by_tensor)


def test_random_numbers_have_their_bounds_and_follow_from_the_state() -> None:
    uniform = distribution(0, FLOAT)
    send(uniform, "setMin:", Single(0.25))
    send(uniform, "setMax:", Single(0.75))
    numbers, state, again, _ = drawn(uniform, 3)
    assert 0.25 <= float(numbers.min()) < 0.26
    assert 0.74 < float(numbers.max()) <= 0.75
    assert numbers.equal(again)
    assert not numbers.equal(drawn(uniform, 4)[0])
    assert not state.equal(torch.full((7,), 3, dtype=torch.int32))


def test_random_whole_and_normal_numbers() -> None:
    whole, normal = distribution(0, INT64), distribution(1, FLOAT)
    send(whole, "setMinInteger:", -2)
    send(whole, "setMaxInteger:", 3)
    send(normal, "setMean:", Single(5.0))
    send(normal, "setStandardDeviation:", Single(0.5))
    assert sorted(set(drawn(whole, 1)[0].flatten().tolist())) == [-2, -1, 0, 1, 2, 3], "the last one, too"
    numbers = drawn(normal, 1)[0]
    assert abs(float(numbers.mean()) - 5) < 0.05
    assert abs(float(numbers.std()) - 0.5) < 0.05


def test_random_numbers_leave_torchs_generator_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    drawn(distribution(0, FLOAT), 1)
    assert torch.rand(3).equal(expected)


def test_dropout_keeps_the_mean() -> None:
    graph = Graph()
    (result,) = graph.run(graph("dropoutTensor:rate:name:", graph.feed(torch.ones(10000)), 0.25, None))
    assert set(result.tolist()) == {0.0, float(torch.tensor(1) / 0.75)}
    assert abs(float(result.mean()) - 1) < 0.05
