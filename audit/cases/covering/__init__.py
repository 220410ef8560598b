"""Which combinations of dtype, layout, size, values, form, gradients and flags an operator's cases are at."""
