"""Arguments of layers and losses whose shapes must fit one another: convolutions, pooling, norms, attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .operands import Example, call, dense, whole


def image(variant: int, channels: int = 2) -> Tensor:
    """A small batch of images of a size that depends on the variant."""
    return dense(1 + variant % 2, channels, 5, 4 + variant)


def convolution(*rest: Any) -> Callable[[int], Example]:
    """Input, weight, bias, stride, padding, dilation, transposed, output padding, groups, and the rest."""

    def make(variant: int) -> Example:
        pad = variant % 2
        return call(
            image(variant), dense(2, 2, 3, 2), dense(2), [1, 1], [pad, pad], [1, 1], variant == 3, [0, 0], 1, *rest
        )

    return make


def mps_convolution(variant: int) -> Example:
    """Padding comes before stride."""
    stride = 1 + variant % 2
    bias = None if variant == 1 else dense(3)
    return call(image(variant), dense(3, 2, 3, 2), bias, [variant % 2, 1], [stride, stride], [1, 1], 1)


def mps_convolution_gradient(variant: int) -> Example:
    """What `mps_convolution` with stride 1 hands back."""
    x, weight, pad = image(variant), dense(3, 2, 3, 2), [variant % 2, 1]
    result = torch.nn.functional.conv2d(x, weight, None, 1, pad)
    return call(x, dense(*result.shape), weight, pad, [1, 1], [1, 1], 1, [True, True, variant != 1])


def mps_transposed(variant: int) -> Example:
    """Input, weight, padding, output padding, stride, dilation, groups."""
    return call(image(variant), dense(2, 3, 3, 2), [variant % 2, 0], [0, 0], [1 + variant % 2, 1], [1, 1], 1)


def mps_transposed_gradient(variant: int) -> Example:
    """What a transposed convolution hands back."""
    x, weight, pad = image(variant), dense(2, 3, 3, 2), [variant % 2, 0]
    result = torch.nn.functional.conv_transpose2d(x, weight, None, 1, pad)
    return call(x, dense(*result.shape), weight, pad, [0, 0], [1, 1], [1, 1], 1, [True, variant != 1])


def linear_gradient(variant: int) -> Example:
    """Input, gradient of the output, weight, and which gradients are wanted."""
    batch = [(3,), (2, 3), (1,), (5,)][variant]
    return call(dense(*batch, 4), dense(*batch, 2), dense(2, 4), [True, True, variant != 1])


def pooling_gradient(variant: int) -> Example:
    """Gradient, input, kernel, stride."""
    x, kernel = image(variant), [2 + variant % 2, 2]
    result = torch.nn.functional.max_pool2d(x, kernel, kernel)
    return call(dense(*result.shape), x, kernel, kernel)


def attention(variant: int) -> Example:
    """Query, key and value; with a mask, or causal."""
    heads, length = 1 + variant % 2, 3 + variant
    query, key, value = (dense(1, heads, length, 4) for _ in range(3))
    if variant == 1:
        return call(query, key, value, dense(length, length))
    return call(query, key, value, None, 0.0, variant == 2)


def rms_norm_gradient(variant: int) -> Example:
    """Gradient, input, the normalized shape, the inverse of the root mean square, weight, and what is wanted."""
    rows = variant + 1
    return call(dense(rows, 4), dense(rows, 4), [4], dense(rows, 1), dense(4), [True, True])


def batch_norm(*, statistics: bool, tail: tuple[Any, ...]) -> Callable[[int], Example]:
    """Input, weight, bias, running mean and variance where wanted, then `tail`."""

    def make(variant: int) -> Example:
        weights = (None, None) if variant == 1 else (dense(2), dense(2))
        running = (dense(2), dense(2)) if statistics else ()
        return call(image(variant), *weights, *running, *tail)

    return make


def batch_norm_gradient(variant: int) -> Example:
    """The native implementation (number 0) has no reserved space."""
    x, train = image(variant), variant % 2 == 0
    saved = (dense(2), dense(2)) if train else (torch.empty(0), torch.empty(0))
    tensors = (x, dense(*x.shape), dense(2), dense(2), dense(2), *saved)
    return call(0, *tensors, train, 1e-5, [True, True, True], torch.empty(0, dtype=torch.uint8))


def bag(variant: int) -> tuple[Tensor, Tensor, Tensor]:
    """Weights of 6 rows, indices, and the offsets of the bags."""
    return dense(6, 3 + variant), torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 2, 3 + variant % 2])


def embedding_bag(variant: int) -> Example:
    """All modes: sum, mean and max."""
    return call(*bag(variant), False, variant % 3, False, None, False, -1)


def embedding_bag_padding(variant: int) -> Example:
    """As a user passes it, with an index that is left out."""
    return call(*bag(variant), False, variant % 3, False, None, False, 4)


def embedding_bag_gradient(variant: int) -> Example:
    """Only sum and mean have one that needs no further state."""
    weight, indices, offsets = bag(variant)
    mode = variant % 2
    result = torch.ops.aten._embedding_bag_forward_only(weight, indices, offsets, False, mode)
    belongs_to = torch.tensor([0, 0, 1, 1, 2, 2] if variant % 2 else [0, 0, 1, 2, 2, 2])
    return call(dense(*result[0].shape), indices, belongs_to, *result[2:], 6, False, mode, None, -1)


def embedding_bag_sparse_gradient(variant: int) -> Example:
    """The same with the offsets, for a sparse gradient."""
    weight, indices, offsets = bag(variant)
    result = torch.ops.aten._embedding_bag(weight, indices, offsets, False, 0)
    return call(dense(*result[0].shape), indices, offsets, result[1], result[2], 6, False, 0, None, -1)


def ctc(*, lists: bool) -> Callable[[int], Example]:
    """Log probabilities, targets, and the lengths of both as lists or as tensors."""

    def make(variant: int) -> Example:
        steps, batch = 6 + variant, 2
        lengths = ([steps] * batch, [2, 3])
        probabilities = dense(steps, batch, 5).log_softmax(-1)
        given = lengths if lists else tuple(torch.tensor(length) for length in lengths)
        return call(probabilities, whole(1, 5, batch, 3), *given, 0, variant % 3, variant == 3)

    return make


def ctc_forward(*, lists: bool) -> Callable[[int], Example]:
    """The same without the reduction."""

    def make(variant: int) -> Example:
        probabilities, targets, steps, _, blank, *_ = ctc(lists=lists)(variant).args
        lengths = [3, 3]  # of shorter targets, what is left of the second result stays as malloc gave it
        return call(probabilities, targets, steps, lengths if lists else torch.tensor(lengths), blank, variant == 3)

    return make


def ctc_gradient(variant: int) -> Example:
    """The gradient, the arguments of the loss, and what its forward left."""
    arguments = ctc(lists=True)(variant).args
    loss, alpha = torch.ops.aten._ctc_loss(*arguments[:4], 0)
    return call(dense(2), *arguments[:4], loss, alpha, 0)


def helper_of_cumulation(variant: int) -> Example:
    """Input, values and indices of its shape, and the dimension."""
    x = dense(3 + variant, 2)
    return call(x, torch.zeros_like(x), torch.zeros(x.shape, dtype=torch.int64), variant % 2)


def sobol_state(variant: int) -> Example:
    """A row of 30 direction numbers for each dimension."""
    return call(torch.zeros(2 + variant, 30, dtype=torch.int64), 2 + variant)


def sobol_step(variant: int) -> tuple[Tensor, int, Tensor, int, int]:
    """The last point, how many to draw, the direction numbers, the dimension, and how many were drawn."""
    dimension = 1 + variant
    state = torch.ops.aten._sobol_engine_initialize_state_(torch.zeros(dimension, 30, dtype=torch.int64), dimension)
    return torch.zeros(dimension, dtype=torch.int64), 4, state, dimension, 0


def sobol_draw(variant: int) -> Example:
    """Points as float32."""
    last, count, state, dimension, drawn = sobol_step(variant)
    return call(last, count, state, dimension, drawn, torch.float32)


def sobol_scramble(variant: int) -> Example:
    """The direction numbers, lower triangular matrices of bits, and the dimension."""
    _, _, state, dimension, _ = sobol_step(variant)
    return call(state, whole(0, 2, dimension, 30, 30).tril(), dimension)


def affine_gradient(variant: int) -> Example:
    """The gradient of a grid."""
    size = [2, 1, 3, 4 + variant]
    return call(dense(2, 3, 4 + variant, 2), size, variant % 2 == 0)


def upsampled_gradient(variant: int) -> Example:
    """Gradient, output size, input size."""
    return call(dense(1, 2, 6, 4 + variant), [6, 4 + variant], [1, 2, 3, 4], variant % 2 == 0, None, None)


def volume(*tail: Any) -> Callable[[int], Example]:
    """A volume, the size wanted, and the rest; every second call gives a factor instead of a size."""

    def make(variant: int) -> Example:
        by_factor = variant % 2 == 1
        size, factors = (None, [2.0, 1.0, 2.0]) if by_factor else ([4, 3 + variant, 2], None)
        return call(dense(1, 2, 2, 3, 2), size, *tail, factors)

    return make


def spatial_targets(variant: int) -> Example:
    """Log probabilities of 3 classes at every place, and the classes."""
    x = dense(2, 3, 2, 2 + variant).log_softmax(1)
    return call(x, whole(0, 3, 2, 2, 2 + variant), None if variant == 1 else dense(3), variant % 3, -100)


def glu_tangent(variant: int) -> Example:
    """The result, the input, its tangent, the dimension that was halved."""
    rows = 2 + variant
    return call(dense(rows, 3), dense(rows, 6), dense(rows, 6), 1)


def glu_second_tangent(variant: int) -> Example:
    """Gradients of input and result, the input, and tangents of both."""
    rows = 2 + variant
    return call(dense(rows, 6), dense(rows, 3), dense(rows, 6), dense(rows, 3), dense(rows, 6), 1)


def spacings(**kwargs: Any) -> Callable[[int], Example]:
    """Coordinates along the dimensions that are differentiated."""

    def make(variant: int) -> Example:
        x = dense(4, 5 + variant)
        count = len(kwargs["dim"]) if isinstance(kwargs["dim"], list) else 1
        return call(x, spacing=[torch.arange(float(n)) + 1 for n in x.shape[:count]], edge_order=1, **kwargs)

    return make


def loss_scale(variant: int) -> Example:
    """The scale, the growth tracker, whether an infinity was found, and how to grow."""
    tracker = torch.tensor([variant], dtype=torch.int32)
    return call(torch.tensor([8.0]), tracker, torch.tensor([float(variant % 2)]), 2.0, 0.5, 2 + variant)


def fake_quantized(*, channels: bool) -> Callable[[int], Example]:
    """Gradient, input, scale and zero point, of the whole tensor or of each row."""

    def make(variant: int) -> Example:
        rows = 2 + variant
        count = rows if channels else 1
        axis = (0,) if channels else ()
        return call(dense(rows, 3), dense(rows, 3), dense(count), torch.zeros(count), *axis, -8, 7, 1.0)

    return make


def with_dtype(make: Callable[[int], Example]) -> Callable[[int], Example]:
    """Half precision, with the result in float32."""

    def made(variant: int) -> Example:
        return call(*(t.half() for t in make(variant).args), torch.float32)

    return made


def matrices(variant: int) -> Example:
    """Two matrices to multiply."""
    return call(dense(2 + variant, 3), dense(3, 4))


def batches(variant: int) -> Example:
    """Two batches of matrices to multiply."""
    return call(dense(2, 2 + variant, 3), dense(2, 3, 4))


def added(make: Callable[[int], Example]) -> Callable[[int], Example]:
    """The operands of a product, after what it is added to."""

    def made(variant: int) -> Example:
        first, second = make(variant).args
        return call(first @ second, first, second)

    return made


def scaled_matrices(variant: int) -> tuple[Tensor, Tensor]:
    """Two float8 matrices to multiply, the second by columns, as hardware wants them."""
    first, second = dense(16, 32), dense(16 * (1 + variant), 32)
    return first.to(torch.float8_e4m3fn), second.to(torch.float8_e4m3fn).t()
