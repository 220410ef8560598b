"""Arguments written by hand, for overloads that want what no draw from their schema finds.

Each entry of `EXAMPLES` makes one call from a variant number (0 to `VARIANTS` - 1); the other forms of the operator,
such as its out overload, are derived from these calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from .layers import (
    added,
    affine_gradient,
    attention,
    batch_norm,
    batch_norm_gradient,
    batches,
    convolution,
    ctc,
    ctc_forward,
    ctc_gradient,
    embedding_bag,
    embedding_bag_gradient,
    embedding_bag_padding,
    embedding_bag_sparse_gradient,
    fake_quantized,
    glu_second_tangent,
    glu_tangent,
    helper_of_cumulation,
    image,
    linear_gradient,
    loss_scale,
    matrices,
    mps_convolution,
    mps_convolution_gradient,
    mps_transposed,
    mps_transposed_gradient,
    pooling_gradient,
    rms_norm_gradient,
    scaled_matrices,
    sobol_draw,
    sobol_scramble,
    sobol_state,
    sobol_step,
    spacings,
    spatial_targets,
    upsampled_gradient,
    volume,
    with_dtype,
)
from .operands import VARIANTS, Example, call, coo, csr, dense, uncoalesced, whole
from .optimizers import optimizers
from .recurrent import GATES, cell, gru_cell_gradient, lstm_cell_gradient, packed_sequence, recurrent
from .sparse import (
    of_compressed,
    of_sparse,
    placed_indices,
    sparse_constructors,
    sparse_gradient,
    sparse_parts,
    storage,
    weight_norm_gradient,
)

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


def examples_of(name: str) -> Iterator[Example]:
    """The examples for the overload "aten::lstm.input"; none where nothing was written for it."""
    make = EXAMPLES.get(name.removeprefix("aten::"))
    if make is not None:
        for variant in range(VARIANTS):
            yield make(variant)
