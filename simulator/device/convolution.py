"""The convolution backend that torch reports for mps tensors; torch.compile predicts memory formats by it.

A torch built without mps reports "overrideable", an unknown backend with contiguous results. A Mac's torch reports
`Mps`, with channels_last results if the input or the weight is. torch's own code then decides the memory format, and
the simulated kernels (csrc/composites.cpp) follow it.
"""

from __future__ import annotations

import functools
from typing import Any

_TRANSPOSED = 6  # its position among the arguments


def install() -> None:
    """Make `torch._C._select_conv_backend` return the backend of a Mac for mps tensors."""
    import torch

    backends: Any = getattr(torch._C, "_ConvBackend")  # noqa: B009  (torch's stubs name it otherwise)
    # torch 2.13 exports the second with a comma in its name.
    transposing = next(value for name, value in backends.__members__.items() if name.startswith("MpsTranspose"))
    select = torch._C._select_conv_backend

    @functools.wraps(select)
    def select_as_on_a_mac(*arguments: Any, **options: Any) -> Any:
        backend = select(*arguments, **options)
        convolved = arguments[0] if arguments else options["input"]
        if backend != backends.Overrideable or convolved.device.type != "mps":
            return backend
        positional = arguments[_TRANSPOSED] if len(arguments) > _TRANSPOSED else False
        return transposing if options.get("transposed", positional) else backends.Mps

    torch._C._select_conv_backend = select_as_on_a_mac
