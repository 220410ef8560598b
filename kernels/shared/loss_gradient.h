// One number for all rows, or, without reduction, one for each; where the losses were reduced, the first alone is read.
inline void check_loss_gradient(const Tensor& grad_output, int64_t reduction, int64_t rows) {
  if (reduction == Reduction::None && grad_output.dim() > 0) {
    TORCH_CHECK(
        grad_output.dim() == 1 && grad_output.size(0) == rows,
        "Expected a tensor of dimension 1 and tensor.size[0] == ", rows, " but got: dimension ", grad_output.dim(),
        " and tensor.size[0] = ", grad_output.size(0));
  } else {
    TORCH_CHECK(grad_output.numel() != 0, "Expected a gradient of one element but got an empty one");
  }
}
