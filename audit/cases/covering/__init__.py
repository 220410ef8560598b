"""Which combinations of dtype, layout, size, values, form, gradients and flags the cases of an operator cover."""
