"""Checks that the mps device of this process still computes.

torch does not read the status of command buffers. After one that faulted, macOS ignores all further work of the
process: results keep what their memory held, and no error is raised.
"""

from __future__ import annotations

from itertools import count

_ELEMENTS = 4096
# Small enough that sums and products are exact in float32.
_LARGEST = 61
_calls = count(1)


def canary() -> str:
    """Return a short description of a wrong result of the device, or "" if it computes correctly. Takes milliseconds.

    The inputs differ in each call, so that old results in memory do not pass.
    """
    import torch

    from ...errors import one_line

    number = next(_calls)
    numbers = torch.arange(number, number + _ELEMENTS) % _LARGEST
    x = numbers.to(torch.float32).reshape(64, 64)
    try:
        y = x.to("mps")
        computed = {"copy": y, "x * 3 + 1": y * 3 + 1, "x @ x": y @ y, "sum": y.sum(1)}
        results = {what: result.cpu() for what, result in computed.items()}
    except Exception as error:  # torch raises errors of many classes
        return f"{type(error).__name__}: {one_line(error)}"
    expected = {"copy": x, "x * 3 + 1": x * 3 + 1, "x @ x": x @ x, "sum": x.sum(1)}
    wrong = [what for what, result in results.items() if not torch.equal(result, expected[what])]
    return f"wrong result of {', '.join(wrong)}" if wrong else ""
