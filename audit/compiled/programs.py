"""Small programs like those that users compile: networks, optimizer steps, random numbers, control flow.

Each is one function of tensors that uses only torch and torch.nn.functional, so that a program for a Mac can contain
it unchanged. Random numbers are compared by their distribution, 8,192 draws each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .scenario import FLOATING, CompiledScenario, small_matrix

DRAWN = (64, 128)


# ---- networks: forward and backward are compared


def perceptron(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, target: Tensor) -> Tensor:
    """Two layers, a norm and GELU between, and the loss of a classifier."""
    hidden = functional.gelu(functional.layer_norm(functional.linear(x, w1, b1), w1.shape[:1]))
    return functional.cross_entropy(functional.linear(hidden, w2, b2), target, label_smoothing=0.1)


def convolutional(x: Tensor, w1: Tensor, w2: Tensor, head: Tensor, target: Tensor) -> Tensor:
    """A residual block of convolutions with batch_norm in training, two poolings and a loss."""
    first = functional.relu(functional.batch_norm(functional.conv2d(x, w1, padding=1), None, None, training=True))
    second = functional.silu(functional.conv2d(first, w2, padding=1) + first)
    pooled = functional.adaptive_avg_pool2d(functional.max_pool2d(second, 2), 1).flatten(1)
    return functional.nll_loss(functional.log_softmax(functional.linear(pooled, head), -1), target)


def transformer_block(x: Tensor, qkv: Tensor, out: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """Causal attention of two heads with rotations of positions, and a gated layer."""
    batch, length, width = x.shape
    parts = functional.linear(functional.rms_norm(x, (width,)), qkv).view(batch, length, 3, 2, width // 2)
    q, k, v = parts.permute(2, 0, 3, 1, 4)
    angles = torch.arange(length, device=x.device)[:, None] / 10 ** torch.arange(width // 4, device=x.device)
    sine, cosine = angles.sin().to(x.dtype), angles.cos().to(x.dtype)
    rotated = []
    for part in (q, k):
        even, odd = part[..., ::2], part[..., 1::2]
        turned = torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), -1)
        rotated.append(turned.flatten(-2))
    mask = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
    scores = (rotated[0] @ rotated[1].transpose(-2, -1)) / (width // 2) ** 0.5
    attended = scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v
    x = x + functional.linear(attended.transpose(1, 2).flatten(2), out)
    gate, value = functional.linear(functional.rms_norm(x, (width,)), up).chunk(2, -1)
    return x + functional.linear(functional.silu(gate) * value, down)


def recurrent(x: Tensor, hidden: Tensor, cell: Tensor, w_in: Tensor, w_hidden: Tensor) -> tuple[Tensor, Tensor]:
    """Five steps of an LSTM, written out."""
    outputs = []
    for step in range(x.shape[1]):
        gates = functional.linear(x[:, step], w_in) + functional.linear(hidden, w_hidden)
        i, f, g, o = gates.chunk(4, 1)
        cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        hidden = o.sigmoid() * cell.tanh()
        outputs.append(hidden)
    return torch.stack(outputs, 1), cell


def upsampling(x: Tensor, w: Tensor, up: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """An image decoder: group_norm, a transposed convolution, an interpolation, a padded difference."""
    normed = functional.silu(functional.group_norm(functional.conv2d(x, w, padding=1), 2, scale, shift))
    doubled = functional.conv_transpose2d(normed, up, stride=2)
    skipped = functional.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
    return functional.pad(doubled - skipped.mean(1, keepdim=True), (1, 0, 1, 0), mode="reflect").tanh()


def experts(x: Tensor, router: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """A mixture of four experts: the two best of each token, weighted, by one-hot masks."""
    weights, chosen = functional.linear(x, router).softmax(-1).topk(2, -1)
    weights = weights / weights.sum(-1, keepdim=True)
    hidden = torch.einsum("tw,ewd->ted", x, up).relu().square()
    answers = torch.einsum("ted,edw->tew", hidden, down)
    gates = (functional.one_hot(chosen, 4).to(x.dtype) * weights[..., None]).sum(1)
    return (answers * gates[..., None]).sum(1)


def embedded(tokens: Tensor, table: Tensor, weight: Tensor) -> Tensor:
    """Embeddings with a padding token, averaged over the other tokens, against tied output weights."""
    looked_up = functional.embedding(tokens, table, padding_idx=0)
    present = (tokens != 0).to(table.dtype)[..., None]
    mean = (looked_up * present).sum(1) / present.sum(1).clamp(min=1)
    return functional.linear(functional.normalize(mean, dim=-1) * weight, table).logsumexp(-1)


def radiance(points: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    """Points encoded by sines, a density and a colour, and the light along a ray by cumulated products."""
    waves = points[..., None] * (2.0 ** torch.arange(4, device=points.device)).to(points.dtype)
    encoded = torch.cat((waves.sin(), waves.cos()), -1).flatten(-2)
    raw = functional.linear(functional.softplus(functional.linear(encoded, w1)), w2)
    opacity = 1 - (-functional.relu(raw[..., 3])).exp()
    passed = torch.cumprod(1 - opacity + 1e-6, -1)
    return (raw[..., :3].sigmoid() * (opacity * passed)[..., None]).sum(-2)


def _scaled(dtype: torch.dtype, *shape: int) -> Tensor:
    return (torch.randn(*shape) * 0.3).to(dtype)


def _perceptron_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for batch, width in ((5, 33), (40, 8)):
        weights = _scaled(dtype, width, 12), _scaled(dtype, width), _scaled(dtype, 7, width), _scaled(dtype, 7)
        yield torch.randn(batch, 12).to(dtype), *weights, torch.randint(0, 7, (batch,))


def _image_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    weights = _scaled(dtype, 4, 3, 3, 3), _scaled(dtype, 4, 4, 3, 3), _scaled(dtype, 5, 4)
    yield torch.randn(2, 3, 9, 8).to(dtype), *weights, torch.tensor([4, 0])


def _token_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for length in (6, 40):
        weights = _scaled(dtype, 48, 16), _scaled(dtype, 16, 16), _scaled(dtype, 64, 16), _scaled(dtype, 16, 32)
        yield torch.randn(2, length, 16).to(dtype), *weights


def _sequence_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    state = torch.zeros(3, 6).to(dtype), torch.zeros(3, 6).to(dtype)
    yield torch.randn(3, 5, 4).to(dtype), *state, _scaled(dtype, 24, 4), _scaled(dtype, 24, 6)


def _decoder_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    weights = _scaled(dtype, 4, 3, 3, 3), _scaled(dtype, 4, 2, 2, 2), _scaled(dtype, 4) + 1, _scaled(dtype, 4)
    yield torch.randn(2, 3, 5, 6).to(dtype), *weights


def _expert_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    yield torch.randn(9, 8).to(dtype), _scaled(dtype, 4, 8), _scaled(dtype, 4, 8, 5), _scaled(dtype, 4, 5, 8)


def _embedding_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    tokens = torch.tensor([[3, 1, 0, 0], [2, 2, 9, 0], [0, 0, 0, 0]])
    yield tokens, torch.randn(10, 6).to(dtype), _scaled(dtype, 6) + 1


def _ray_inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    yield torch.rand(4, 33, 3).to(dtype), _scaled(dtype, 10, 24), _scaled(dtype, 4, 10)


# ---- steps of optimisers: the parameters and the state afterwards are compared


def sgd_step(parameters: list[Tensor], gradients: list[Tensor], moments: list[Tensor]) -> None:
    """One step of stochastic gradient descent with Nesterov's momentum and weight decay."""
    for parameter, gradient, moment in zip(parameters, gradients, moments, strict=True):
        wanted = gradient.add(parameter, alpha=0.01)
        moment.mul_(0.9).add_(wanted)
        parameter.add_(wanted.add(moment, alpha=0.9), alpha=-0.1)


def adam_step(parameters: list[Tensor], gradients: list[Tensor], firsts: list[Tensor], seconds: list[Tensor]) -> None:
    """The third step of AdamW."""
    for parameter, gradient, first, second in zip(parameters, gradients, firsts, seconds, strict=True):
        parameter.mul_(1 - 1e-3 * 0.01)
        first.lerp_(gradient, 1 - 0.9)
        second.mul_(0.999).addcmul_(gradient, gradient, value=1 - 0.999)
        root = second.sqrt().div_((1 - 0.999**3) ** 0.5).add_(1e-8)
        parameter.addcdiv_(first, root, value=-1e-3 / (1 - 0.9**3))


def foreach_adam_step(
    parameters: list[Tensor], gradients: list[Tensor], firsts: list[Tensor], seconds: list[Tensor]
) -> None:
    """A step of AdamW by foreach functions, as torch.optim makes it, with the norm of all gradients clipped to 1."""
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    scale = torch.clamp(1.0 / (norm + 1e-6), max=1.0)
    cut = torch._foreach_mul(gradients, scale)
    torch._foreach_mul_(parameters, 1 - 1e-3 * 0.01)
    torch._foreach_lerp_(firsts, cut, 1 - 0.9)
    torch._foreach_mul_(seconds, 0.999)
    torch._foreach_addcmul_(seconds, cut, cut, 1 - 0.999)
    roots = torch._foreach_sqrt(seconds)
    torch._foreach_add_(roots, 1e-8)
    torch._foreach_addcdiv_(parameters, firsts, roots, -1e-3)


def average_step(averages: list[Tensor], parameters: list[Tensor]) -> None:
    """A moving average of the parameters."""
    for average, parameter in zip(averages, parameters, strict=True):
        average.lerp_(parameter, 0.05)


def _parameter_lists(dtype: torch.dtype, count: int) -> tuple[list[Tensor], ...]:
    shapes = ((5, 7), (33,), (), (3, 2, 2))
    return tuple([torch.rand(shape).to(dtype) for shape in shapes] for _ in range(count))


def _three_lists(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    yield _parameter_lists(dtype, 3)


def _four_lists(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    yield _parameter_lists(dtype, 4)


def _two_lists(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    yield _parameter_lists(dtype, 2)


# ---- random numbers: many draws, whose distribution is compared


def two_uniform(x: Tensor) -> Tensor:
    """The difference of two draws of one graph: 0 everywhere if they are the same numbers."""
    return torch.rand_like(x) - torch.rand_like(x)


def uniform_rows(x: Tensor) -> Tensor:
    """The difference of neighbouring rows of one draw: narrower if rows repeat each other."""
    drawn = torch.rand_like(x)
    return drawn - drawn.roll(1, 0)


def normal_tensor(x: Tensor) -> Tensor:
    """Normal numbers of another mean and spread."""
    return torch.normal(x + 2, x + 0.5)


def filled_uniform(x: Tensor) -> Tensor:
    """A tensor filled between -2 and 3."""
    return x.clone().uniform_(-2, 3)


def filled_exponential(x: Tensor) -> Tensor:
    """Exponential numbers of rate 2."""
    return x.clone().exponential_(2.0)


def filled_cauchy(x: Tensor) -> Tensor:
    """Cauchy numbers around 1."""
    return x.clone().cauchy_(1.0, 0.5)


def filled_log_normal(x: Tensor) -> Tensor:
    """Logarithmically normal numbers."""
    return x.clone().log_normal_(0.5, 0.7)


def filled_geometric(x: Tensor) -> Tensor:
    """Geometric numbers of probability 0.3."""
    return x.clone().geometric_(0.3)


def integers(x: Tensor) -> Tensor:
    """Integers from -3 to 11."""
    return torch.randint_like(x, -3, 12)


def wide_integers(x: Tensor) -> Tensor:
    """Integers of more than 32 bits."""
    return torch.randint(-(2**40), 2**40, x.shape, device=x.device)


def coins(x: Tensor) -> Tensor:
    """Bernoulli numbers of probability 0.3."""
    return torch.bernoulli(x + 0.3)


def dropped(x: Tensor) -> Tensor:
    """Dropout of ones, times uniform numbers of the same graph."""
    return functional.dropout(x + 1, 0.4) * torch.rand_like(x)


def dropped_alpha(x: Tensor) -> Tensor:
    """alpha_dropout of ones."""
    return functional.alpha_dropout(x + 1, 0.4, training=True)


def leaky(x: Tensor) -> Tensor:
    """rrelu in training, of negative numbers."""
    return functional.rrelu(x - 1, 0.1, 0.4, training=True)


def gumbel(x: Tensor) -> Tensor:
    """The Gumbel softmax of two equal logits; the first of each pair, since the second is 1 minus it."""
    return functional.gumbel_softmax(x.view(-1, 2), tau=0.7)[:, 0]


def categories(x: Tensor) -> Tensor:
    """8,192 draws of four categories with weights 1 to 4."""
    return torch.multinomial(torch.arange(1.0, 5.0, device=x.device), 8192, replacement=True)


def _zeros_to_draw_for(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    yield (torch.zeros(*DRAWN, dtype=dtype),)


# ---- control that depends on data


def branch_by_sum(x: Tensor) -> Tensor:
    """A Python branch on a value, which breaks the graph."""
    return x + 1 if x.sum() > 0 else x - 1


def branch_by_cond(x: Tensor) -> Any:
    """The same branch by torch.cond, in one graph."""
    return torch.cond(x.sum() > 0, lambda t: t.sin() + 1, lambda t: t.cos() - 1, (x,))


def halved_while_large(x: Tensor) -> Tensor:
    """A loop whose length depends on the values."""
    while x.abs().max() > 0.25:
        x = x / 2
    return x


def scaled_by_item(x: Tensor) -> Tensor:
    """A number that is read by `.item()` and used again."""
    return x * x.max().item() + 1


def counted_size(x: Tensor) -> Tensor:
    """A size that is known only when the graph runs."""
    return x[: int((x > 1).sum())].cumsum(0)


def _both_signs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for sign in (1, -1):
        yield (sign * (torch.rand(5, 7) + 0.5).to(dtype),)


def _some_above_one(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    yield (torch.tensor([0.5, 2.0, 3.0, 1.5, 0.25, 0.75], dtype=dtype),)


# What draws, and what the distribution is asked for under.
_DRAWING: dict[str, tuple[Callable[..., Any], ...]] = {
    "rand_like": (torch.rand_like, two_uniform, uniform_rows),
    "randn_like": (torch.randn_like,),
    "normal": (normal_tensor,),
    "uniform": (filled_uniform,),
    "exponential": (filled_exponential,),
    "cauchy": (filled_cauchy,),
    "log_normal": (filled_log_normal,),
    "geometric": (filled_geometric,),
    "randint_like": (integers, wide_integers),
    "bernoulli": (coins,),
    "nn.functional.dropout": (dropped,),
    "nn.functional.alpha_dropout": (dropped_alpha,),
    "nn.functional.rrelu": (leaky,),
    "nn.functional.gumbel_softmax": (gumbel,),
    "multinomial": (categories,),
}


def _networks() -> Iterator[CompiledScenario]:
    for call, inputs in (
        (perceptron, _perceptron_inputs),
        (convolutional, _image_inputs),
        (transformer_block, _token_inputs),
        (recurrent, _sequence_inputs),
        (upsampling, _decoder_inputs),
        (experts, _expert_inputs),
        (embedded, _embedding_inputs),
        (radiance, _ray_inputs),
    ):
        yield CompiledScenario(f"networks.{call.__name__}", "training", call, inputs, FLOATING, differentiable=True)


def _optimiser_steps() -> Iterator[CompiledScenario]:
    for call, inputs in (
        (sgd_step, _three_lists),
        (adam_step, _four_lists),
        (foreach_adam_step, _four_lists),
        (average_step, _two_lists),
    ):
        yield CompiledScenario(f"optim.{call.__name__}", "a step", call, inputs, FLOATING)


def _draws() -> Iterator[CompiledScenario]:
    for operator, calls in _DRAWING.items():
        for call in calls:
            variant = f"draws: {call.__name__}"
            yield CompiledScenario(operator, variant, call, _zeros_to_draw_for, ("float32",), distribution=True)


def _control() -> Iterator[CompiledScenario]:
    yield CompiledScenario("control.branch", "of Python", branch_by_sum, _both_signs, ("float32", "int64"))
    yield CompiledScenario("control.branch", "by cond", branch_by_cond, _both_signs, ("float32",))
    yield CompiledScenario("control.loop", "while large", halved_while_large, _both_signs, ("float32",))
    yield CompiledScenario("control.item", "a number of Python", scaled_by_item, small_matrix, ("float32", "int64"))
    yield CompiledScenario("control.size", "by data", counted_size, _some_above_one, ("float32",))


PROGRAMS: tuple[CompiledScenario, ...] = (*_networks(), *_optimiser_steps(), *_draws(), *_control())
