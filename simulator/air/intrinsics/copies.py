"""Copies of a SIMD group between device and threadgroup memory, which Apple's compiler has for Apple's libraries.

Projects call them by name (`air.simdgroup_async_copy_2d`). A GPU may copy until the kernel waits for the event.
Here the lanes copy at once, each a part, and waiting is a barrier of the SIMD group.
"""

from __future__ import annotations

from .body import Body, Typed
from .operation import Operation

COPIES = ("simdgroup_async_copy_1d", "simdgroup_async_copy_2d")
_DEVICE_AND_THREADGROUP = "3"  # mem_flags of simulator/metal/include/msl/memory_order.h


def copy(body: Body, operation: Operation) -> str:
    """One of COPIES; the event is a null pointer.

    The arguments begin with the size and alignment of an element. In one dimension: destination, source and number of
    elements. In two: the destination, its row length in elements, 1, its width and height; the same for the source; an
    offset in the source; and the value outside of it: 0 for zero, 1 for the value at its edge.
    """
    types = operation.types
    if len(types) != (5 if operation.key.endswith("1d") else 12):
        raise ValueError(f"{len(types)} arguments")
    arguments: list[Typed] = []
    for i, kind in enumerate(types):
        if kind.startswith("ptr"):
            arguments.append(("i64", body.value(f"ptrtoint {kind} %a{i} to i64")))
        elif kind == "<2 x i64>":
            arguments += [("i64", body.value(f"extractelement {kind} %a{i}, i64 {k}")) for k in (0, 1)]
        else:
            arguments.append((kind, f"%a{i}"))
    body.run(f"airrt_{operation.key}", *arguments)
    return "null"


def wait(body: Body, operation: Operation) -> str:
    """`air.wait_simdgroup_events`."""
    body.run("airrt_simdgroup_barrier", ("i32", _DEVICE_AND_THREADGROUP))
    return ""
