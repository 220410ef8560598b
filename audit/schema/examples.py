"""Arguments written by hand, for overloads that want what no draw from their schema finds.

Parameter lists of recurrent layers, sparse operands, states of fused optimizers, shapes that must fit one another.
Each entry of `EXAMPLES` makes one call from a variant number (0 to `VARIANTS` - 1); the other forms of the operator,
such as its out overload, are derived from these calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

VARIANTS = 4


@dataclass(frozen=True)
class Example:
    """One call's arguments, on the CPU."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def call(*args: Any, **kwargs: Any) -> Example:
    """The arguments as an example."""
    return Example(args, kwargs)


def examples_of(name: str) -> Iterator[Example]:
    """The examples for the overload "aten::lstm.input"; none where nothing was written for it."""
    make = EXAMPLES.get(name.removeprefix("aten::"))
    if make is not None:
        for variant in range(VARIANTS):
            yield make(variant)


# ---- operands


def dense(*shape: int) -> Tensor:
    """Values between 0 and 1, float32, never 0."""
    return torch.rand(shape) * 0.9 + 0.05


def whole(low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
    """Integers from low up to but without high."""
    return torch.randint(low, high, shape).to(dtype)


def coo(rows: int, columns: int, *, entries: int = 4) -> Tensor:
    """A coalesced sparse matrix, float32, with at most so many entries."""
    indices = torch.stack([whole(0, rows, entries), whole(0, columns, entries)])
    return torch.sparse_coo_tensor(indices, dense(entries), (rows, columns)).coalesce()


def uncoalesced(rows: int, columns: int) -> Tensor:
    """A sparse matrix with one place given twice."""
    indices = torch.tensor([[0, 0, rows - 1], [1, 1, columns - 1]])
    return torch.sparse_coo_tensor(indices, dense(3), (rows, columns))


def csr(rows: int, columns: int) -> Tensor:
    """A matrix in the CSR layout."""
    return coo(rows, columns).to_sparse_csr()


def compressed(layout: str, variant: int) -> Tensor:
    """A matrix of 4 or more rows in the layout "csr", "csc", "bsr" or "bsc"."""
    matrix = coo(4 + 2 * variant, 2 * variant + 2).to_dense()
    block = ((2, 1 + variant % 2),) if layout.startswith("b") else ()
    made: Tensor = getattr(matrix, f"to_sparse_{layout}")(*block)
    return made


# ---- recurrent layers

INPUT, HIDDEN, BATCH, STEPS = 4, 3, 2, 5
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def layer_parameters(gates: int, layers: int, directions: int) -> list[Tensor]:
    """Weights and biases as torch.nn.RNN hands them over, flat."""
    made = []
    for layer in range(layers):
        width = INPUT if layer == 0 else HIDDEN * directions
        for _ in range(directions):
            shapes = ((gates * HIDDEN, width), (gates * HIDDEN, HIDDEN), (gates * HIDDEN,), (gates * HIDDEN,))
            made += [dense(*shape) - 0.5 for shape in shapes]
    return made


def recurrent(kind: str, *, packed: bool) -> Callable[[int], Example]:
    """Calls of lstm, gru and the plain layers: with padded sequences, or with packed ones."""

    def make(variant: int) -> Example:
        layers, both_ways, batch_first = (1, 2, 1, 2)[variant], variant >= 2, variant % 2 == 1
        directions = 2 if both_ways else 1
        state = dense(layers * directions, BATCH, HIDDEN)
        hidden: Any = [state, dense(*state.shape)] if kind == "lstm" else state
        common = (hidden, layer_parameters(GATES[kind], layers, directions), True, layers, 0.0, False, both_ways)
        if packed:
            return call(dense(STEPS + 2, INPUT), torch.tensor([2, 2, 1, 1, 1]), *common)
        shape = (BATCH, STEPS, INPUT) if batch_first else (STEPS, BATCH, INPUT)
        return call(dense(*shape), *common, batch_first)

    return make


def cell(kind: str) -> Callable[[int], Example]:
    """Calls of one step of a recurrent layer."""

    def make(variant: int) -> Example:
        batch, gates = variant + 1, GATES[kind]
        hidden: Any = [dense(batch, HIDDEN), dense(batch, HIDDEN)] if kind == "lstm" else dense(batch, HIDDEN)
        return call(dense(batch, INPUT), hidden, *layer_parameters(gates, 1, 1))

    return make


def lstm_cell_gradient(variant: int) -> Example:
    """Gradients of hidden and cell state, both kinds of gates, both biases, both cell states."""
    batch = variant + 1
    states, gates = [dense(batch, HIDDEN) for _ in range(4)], [dense(batch, 4 * HIDDEN) for _ in range(2)]
    return call(states[0], states[1], *gates, dense(4 * HIDDEN), dense(4 * HIDDEN), states[2], states[3])


def gru_cell_gradient(variant: int) -> Example:
    """Gradient of the hidden state, both kinds of gates, the hidden state, both biases."""
    batch = variant + 1
    gates = [dense(batch, 3 * HIDDEN) for _ in range(2)]
    return call(dense(batch, HIDDEN), *gates, dense(batch, HIDDEN), dense(3 * HIDDEN), dense(3 * HIDDEN))


# ---- optimizers


def optimizer(states: int, *, steps: bool, tensor_lr: bool, **options: Any) -> Callable[[int], Example]:
    """Calls of a fused optimizer: parameters, gradients, so many lists of states, and the step counts if it has any."""

    def make(variant: int) -> Example:
        shapes = [(2, 3), (4,), (5, 1)][: variant % 3 + 1]
        lists = [[dense(*shape) for shape in shapes] for _ in range(2 + states)]
        if steps:
            lists.append([torch.tensor(float(variant + 1)) for _ in shapes])
        if states == 3 and variant % 2 == 0:
            lists[4] = []  # the largest squares, which only amsgrad keeps
        rate: Any = torch.tensor(0.01) if tensor_lr else 0.01
        given = {k: bool(variant % 2) if isinstance(v, bool) else v for k, v in options.items()}
        return call(*lists, lr=rate, **given)

    return make


ADAM = {"beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-6, "amsgrad": False, "maximize": False}
SGD = {"weight_decay": 0.1, "momentum": 0.9, "dampening": 0.0, "nesterov": False, "maximize": False}
ADAGRAD = {"lr_decay": 0.1, "weight_decay": 0.1, "eps": 1e-6, "maximize": False}


def optimizers() -> dict[str, Callable[[int], Example]]:
    """Calls of all fused optimizers, functional and in place, with the rate as a number and as a tensor."""
    made: dict[str, Callable[[int], Example]] = {}
    for form in ("", "_"):
        for suffix, tensor_lr in (("", False), (".tensor_lr", True)):
            for name in ("adam", "adamw"):
                made[f"_fused_{name}{form}{suffix}"] = optimizer(3, steps=True, tensor_lr=tensor_lr, **ADAM)
            sgd = optimizer(1, steps=False, tensor_lr=tensor_lr, is_first_step=False, **SGD)
            made[f"_fused_sgd{form}{suffix}"] = sgd
            made[f"_fused_adagrad{form}{suffix}"] = optimizer(1, steps=True, tensor_lr=tensor_lr, **ADAGRAD)
    return made


# ---- convolutions and what else has shapes that must fit


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


def storage(*, placed: bool) -> Callable[[int], Example]:
    """A tensor that takes over another storage, all of it or a part."""

    def make(variant: int) -> Example:
        given = torch.arange(8.0 + variant).untyped_storage()
        return call(dense(2), given, 1, [2, 3], [3, 1]) if placed else call(dense(2 + variant), given)

    return make


def placed_indices(layout: str, *, with_layout: bool = False) -> Callable[[int], Example]:
    """The three tensors of a compressed matrix, and its size."""

    def make(variant: int) -> Example:
        matrix = compressed(layout, variant)
        names = ("crow_indices", "col_indices") if layout in ("csr", "bsr") else ("ccol_indices", "row_indices")
        parts = [getattr(matrix, name)() for name in names]
        tail = (matrix.layout,) if with_layout else ()
        return call(*parts, matrix.values(), list(matrix.shape), *tail)

    return make


def made_compressed(layout: str, *, size: bool) -> Callable[[int], Example]:
    """What a compressed matrix is made of, with or without its size."""

    def make(variant: int) -> Example:
        *parts, shape = placed_indices(layout)(variant).args
        return call(*parts, *([shape] if size else []), layout=getattr(torch, f"sparse_{layout}"))

    return make


def sparse_constructors() -> dict[str, Callable[[int], Example]]:
    """Calls of all that make compressed matrices."""
    made: dict[str, Callable[[int], Example]] = {
        "sparse_compressed_tensor.comp_plain_value": made_compressed("csr", size=False),
        "sparse_compressed_tensor.comp_plain_value_size": made_compressed("csr", size=True),
        "_sparse_compressed_tensor_unsafe": made_compressed("csc", size=True),
    }
    for layout in ("csr", "csc", "bsr", "bsc"):
        parts = "ccol_row" if layout.endswith("c") else "crow_col"
        made[f"sparse_{layout}_tensor.{parts}_value"] = made_compressed(layout, size=False)
        made[f"sparse_{layout}_tensor.{parts}_value_size"] = made_compressed(layout, size=True)
        made[f"_sparse_{layout}_tensor_unsafe"] = made_compressed(layout, size=True)
    return made


def weight_norm_gradient(variant: int) -> Example:
    """Gradient of the weight, direction, magnitude, the norms of the forward, the dimension."""
    rows = 2 + variant
    direction, magnitude = dense(rows, 3), dense(rows, 1)
    norms = direction.norm(dim=1, keepdim=True)
    return call(dense(rows, 3), direction, magnitude, norms, 0)


def of_compressed(layout: str) -> Callable[[int], Example]:
    """One compressed matrix."""
    return lambda variant: call(compressed(layout, variant))


def of_sparse(*tail: Any, **kwargs: Any) -> Callable[[int], Example]:
    """One sparse matrix, and the rest."""
    return lambda variant: call(coo(3, 4 + variant), *tail, **kwargs)


def sparse_gradient(operator: str) -> Callable[[int], Example]:
    """A gradient and a result of a sparse softmax, the dimension, and its input."""

    def make(variant: int) -> Example:
        x = coo(3, 4 + variant)
        result = getattr(torch.sparse, operator)(x, 1)
        return call(result, result, 1, x)

    return make


def sparse_parts(*, layout: bool) -> Callable[[int], Example]:
    """Indices, values and size of a sparse matrix."""

    def make(variant: int) -> Example:
        given = {"layout": torch.sparse_coo} if layout else {}
        return call(torch.tensor([[0, 1, 2], [1, 0, 2 + variant]]), dense(3), [3, 4 + variant], **given)

    return make


def packed_sequence(variant: int) -> Example:
    """Rows of a packed sequence, how many sequences go on at each step, and how to pad."""
    return call(dense(7, 2 + variant), torch.tensor([3, 2, 1, 1]), variant % 2 == 0, 0.5, (0, 4, 6, 5)[variant])


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


EXAMPLES: dict[str, Callable[[int], Example]] = {
    # recurrent layers
    **{f"{kind}.input": recurrent(kind, packed=False) for kind in GATES},
    **{f"{kind}.data": recurrent(kind, packed=True) for kind in GATES},
    **{f"{kind}_cell": cell(kind) for kind in GATES},
    "_thnn_differentiable_lstm_cell_backward": lstm_cell_gradient,
    "_thnn_differentiable_gru_cell_backward": gru_cell_gradient,
    "_pad_packed_sequence": packed_sequence,
    "_pack_padded_sequence": lambda v: call(dense(4, 3, 2 + v), torch.tensor([4, 2 + v % 2, 1]), False),
    # optimizers
    **optimizers(),
    # convolutions, linear layers, attention
    "_convolution": convolution(False, False, False, False),
    "_convolution.deprecated": convolution(False, False, False),
    "_convolution_mode": lambda v: call(
        image(v), dense(2, 2, 3, 1), dense(2), [1, 1], ("same", "valid")[v % 2], [1, 1], 1
    ),
    "_mps_convolution": mps_convolution,
    "mps_convolution_backward": mps_convolution_gradient,
    "_mps_convolution_transpose": mps_transposed,
    "mps_convolution_transpose_backward": mps_transposed_gradient,
    "_nnpack_spatial_convolution": lambda v: call(image(v), dense(3, 2, 3, 2), dense(3), [1, 1], [1, 1]),
    "linear_backward": linear_gradient,
    "max_pool2d_backward": pooling_gradient,
    "_scaled_dot_product_attention_math_for_mps": attention,
    "native_channel_shuffle": lambda v: call(dense(2, 4, 3 + v), 2),
    # matrix products
    "mm.dtype": with_dtype(matrices),
    "bmm.dtype": with_dtype(batches),
    "addmm.dtype": with_dtype(added(matrices)),
    "baddbmm.dtype": with_dtype(added(batches)),
    "_int_mm": lambda v: call(whole(-9, 9, 17 + v, 8, dtype=torch.int8), whole(-9, 9, 8, 16, dtype=torch.int8)),
    "_scaled_mm": lambda v: call(
        *scaled_matrices(v), torch.tensor(0.5), torch.tensor(2.0), out_dtype=(torch.float32, torch.bfloat16)[v % 2]
    ),
    "_scaled_mm_v2": lambda v: call(
        *scaled_matrices(v), [torch.tensor(0.5)], [0], [0], [torch.tensor(2.0)], [0], [0], None, torch.float32
    ),
    "_weight_int8pack_mm": lambda v: call(
        dense(2 + v, 16).bfloat16(), whole(-9, 9, 16, 16, dtype=torch.int8), dense(16).bfloat16()
    ),
    # normalization
    "_native_batch_norm_legit.no_stats": batch_norm(statistics=False, tail=(True, 0.1, 1e-5)),
    "_batch_norm_no_update": batch_norm(statistics=True, tail=(0.1, 1e-5)),
    "_batch_norm_impl_index_backward": batch_norm_gradient,
    "_fused_rms_norm_backward": rms_norm_gradient,
    "_weight_norm_interface": lambda v: call(dense(2 + v, 3), dense(2 + v, 1), 0),
    "_weight_norm_interface_backward": weight_norm_gradient,
    # embeddings and losses
    "_embedding_bag_forward_only": embedding_bag,
    "_embedding_bag": embedding_bag,
    "embedding_bag.padding_idx": embedding_bag_padding,
    "_embedding_bag_dense_backward": embedding_bag_gradient,
    "_embedding_bag_sparse_backward": embedding_bag_sparse_gradient,
    "_rowwise_prune": lambda v: call(dense(3, 2 + v), torch.tensor([True, False, True]), torch.int32),
    "ctc_loss.IntList": ctc(lists=True),
    "ctc_loss.Tensor": ctc(lists=False),
    "_ctc_loss": ctc_forward(lists=True),
    "_ctc_loss.Tensor": ctc_forward(lists=False),
    "_ctc_loss_backward": ctc_gradient,
    "nll_loss2d": spatial_targets,
    # grids and sizes
    "grid_sampler": lambda v: call(image(v), dense(1 + v % 2, 3, 2, 2) * 2 - 1, v % 2, v % 3, v % 2 == 0),
    "affine_grid_generator": lambda v: call(dense(2, 2, 3), [2, 1, 3, 4 + v], v % 2 == 0),
    "affine_grid_generator_backward": affine_gradient,
    "_upsample_bicubic2d_aa_backward": upsampled_gradient,
    "_upsample_bilinear2d_aa_backward": upsampled_gradient,
    "_upsample_lanczos2d_aa_backward": upsampled_gradient,
    "upsample_trilinear3d.vec": volume(False),
    "upsample_nearest3d.vec": volume(),
    "_upsample_nearest_exact3d.vec": volume(),
    "index_select_backward": lambda v: call(dense(2, 3), [4 + v, 3], 0, torch.tensor([1, 3])),
    "_reshape_from_tensor": lambda v: call(dense(2, 2 + v, 3), torch.tensor([2 + v, 6])),
    "gradient.tensorarrayint": spacings(dim=0),
    "gradient.tensorarray": spacings(dim=[0, 1]),
    # single operators
    "_remove_batch_dim": lambda v: call(dense(2 + v, 3), 1, 4, v % 2),
    "to.other": lambda v: call(dense(2, 2 + v), whole(0, 9, 3, dtype=(torch.int64, torch.float16)[v % 2])),
    "to.device": lambda v: call(dense(2, 2 + v), torch.device("cpu"), (torch.int64, torch.float16)[v % 2]),
    "_autocast_to_full_precision": lambda v: call(dense(2, 2 + v), False, False),
    "_autocast_to_reduced_precision": lambda v: call(dense(2, 2 + v), False, False, torch.float16, torch.bfloat16),
    "_cummax_helper": helper_of_cumulation,
    "_cummin_helper": helper_of_cumulation,
    "_sobol_engine_initialize_state_": sobol_state,
    "_sobol_engine_draw": sobol_draw,
    "_sobol_engine_ff_": lambda v: Example(sobol_step(v), {}),
    "_sobol_engine_scramble_": sobol_scramble,
    "glu_jvp": glu_tangent,
    "glu_backward_jvp": glu_second_tangent,
    "_amp_update_scale_": loss_scale,
    "_amp_update_scale": loss_scale,
    "_fake_quantize_learnable_per_tensor_affine_backward": fake_quantized(channels=False),
    "_fake_quantize_learnable_per_channel_affine_backward": fake_quantized(channels=True),
    "_foreach_addcmul.Tensor": lambda v: call(*([dense(2), dense(3 + v)] for _ in range(3)), torch.tensor([0.5, 2.0])),
    "_foreach_addcdiv.Tensor": lambda v: call(*([dense(2), dense(3 + v)] for _ in range(3)), torch.tensor([0.5, 2.0])),
    "set_.source_Storage": storage(placed=False),
    "set_.source_Storage_storage_offset": storage(placed=True),
    "_copy_from": lambda v: call(dense(2, 3 + v), dense(2, 3 + v)),
    "_copy_from_and_resize": lambda v: call(dense(2, 3 + v), torch.empty(0)),
    "_resize_output_": lambda v: call(dense(0), [2, 3 + v], torch.device("cpu")),
    "_philox_key_split": lambda v: call(whole(0, 99, 2), 2 + v),
    "_philox_key_fold_in": lambda v: call(whole(0, 99, 2), v),
    "_philox_normal_": lambda v: call(dense(3 + v), whole(0, 99, 2)),
    "_philox_uniform_": lambda v: call(dense(3 + v), whole(0, 99, 2)),
    "_wrapped_linear_prepack": lambda v: call(
        dense(4, 3 + v), torch.tensor(0.1), torch.tensor(0, dtype=torch.int32), dense(4)
    ),
    "_backward": lambda v: call(dense(2 + v), [dense(2 + v)], dense(2 + v)),
    "retain_grad": lambda v: call(dense(2 + v)),
    "_make_dual": lambda v: call(dense(2 + v), dense(2 + v), 0),
    "_make_dual_copy": lambda v: call(dense(2 + v), dense(2 + v), 0),
    "_fw_primal_copy": lambda v: call(dense(2 + v), 0),
    # sparse
    "_sparse_mm": lambda v: call(coo(3, 4), dense(4, 2 + v)),
    "_sparse_mm.reduce": lambda v: call(csr(3, 4), dense(4, 2 + v), ("sum", "mean", "amax", "amin")[v]),
    "_sparse_sparse_matmul": lambda v: call(coo(3, 4), coo(4, 2 + v)),
    "hspmm": lambda v: call(coo(3, 4), dense(4, 2 + v)),
    "smm": lambda v: call(coo(3, 4), dense(4, 2 + v)),
    "sspaddmm": lambda v: call(coo(3, 2 + v), coo(3, 4), dense(4, 2 + v)),
    "_sparse_sum": of_sparse(),
    "_sparse_sum.dtype": of_sparse(dtype=torch.float32),
    "_sparse_sum.dim": lambda v: call(coo(3, 4 + v), [v % 2]),
    "_sparse_sum.dim_dtype": lambda v: call(coo(3, 4 + v), [v % 2], dtype=torch.float32),
    "_sparse_sum_backward": lambda v: call(torch.sparse.sum(x := coo(3, 4 + v), [0]), x, [0]),
    "_sparse_softmax": of_sparse(1, False),
    "_sparse_softmax.int": of_sparse(1),
    "_sparse_softmax_backward_data": sparse_gradient("softmax"),
    "_sparse_log_softmax": of_sparse(1, False),
    "_sparse_log_softmax.int": of_sparse(1),
    "_sparse_log_softmax_backward_data": sparse_gradient("log_softmax"),
    "native_norm": of_sparse(2),
    "native_norm.ScalarOpt_dim_dtype": lambda v: call(coo(3, 4 + v), 2, [0, 1], False, None),
    "sparse_mask": lambda v: call(dense(3, 4 + v), coo(3, 4 + v)),
    "_sparse_mask_projection": lambda v: call(coo(3, 4 + v), coo(3, 4 + v)),
    "_dimI": of_sparse(),
    "_dimV": of_sparse(),
    "_nnz": of_sparse(),
    "coalesce": lambda v: call(uncoalesced(3, 4 + v)),
    "_coalesce": lambda v: call(uncoalesced(3, 4 + v)),
    "_coalesced": of_sparse(True),
    "_coalesced_": of_sparse(True),
    "_to_dense": of_sparse(),
    "indices_copy": of_sparse(),
    "_indices_copy": of_sparse(),
    "values_copy": of_sparse(),
    "_values_copy": of_sparse(),
    "_sparse_broadcast_to": lambda v: call(coo(3, 4), [2 + v, 3, 4]),
    "_sparse_broadcast_to_copy": lambda v: call(coo(3, 4), [2 + v, 3, 4]),
    "copy_sparse_to_sparse_": lambda v: call(coo(3, 4 + v), coo(3, 4 + v)),
    "resize_as_sparse_": lambda v: call(coo(3, 4), coo(4 + v, 5)),
    "sparse_resize_": lambda v: call(coo(3, 4), [3, 5 + v], 2, 0),
    "sparse_resize_and_clear_": lambda v: call(coo(3, 4), [3, 5 + v], 2, 0),
    "sparse_coo_tensor.indices_size": sparse_parts(layout=True),
    "_sparse_coo_tensor_unsafe": sparse_parts(layout=True),
    "_sparse_coo_tensor_with_dims": lambda v: call(
        2, 0, [3, 4 + v], dtype=torch.float32, layout=torch.sparse_coo, device=torch.device("cpu")
    ),
    "_sparse_compressed_tensor_with_dims": lambda v: call(
        2, 0, [3, 4 + v], [], torch.int64, dtype=torch.float32, layout=torch.sparse_csr, device=torch.device("cpu")
    ),
    # sparse compressed
    **sparse_constructors(),
    "_validate_sparse_compressed_tensor_args": placed_indices("csr", with_layout=True),
    **{f"_validate_sparse_{layout}_tensor_args": placed_indices(layout) for layout in ("csr", "csc", "bsr", "bsc")},
    **{f"{part}{copy}": of_compressed("csr") for part in ("crow_indices", "col_indices") for copy in ("", "_copy")},
    **{f"{part}{copy}": of_compressed("csc") for part in ("ccol_indices", "row_indices") for copy in ("", "_copy")},
}
