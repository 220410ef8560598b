"""From a node of a backward to the line of the forward that made it.

Autograd numbers the nodes that a thread makes, one after the other. A call that makes a node has done so by the time
the recorder sees it, so the newest number is its own. Numbers in between belong to nodes that were made around calls.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

REMEMBERED = 200_000  # nodes a thread; older ones are forgotten

# Made after the call that they belong to, when an in-place call has changed a view.
_MADE_AFTERWARDS = "CopySlices"


@dataclass
class ForwardThread:
    """What one thread's forward has made so far: by number, the place, the place of the call before, the overload."""

    nodes: OrderedDict[int, tuple[int, int, str]] = field(default_factory=OrderedDict)
    next_number: int = 0
    last_place: int = 0

    def made(self, next_number: int, place: int, overload: str) -> None:
        """A call at `place` was seen when the next node would get `next_number`."""
        nodes = self.nodes
        for number in range(max(self.next_number, next_number - 8), next_number):
            nodes[number] = (place, self.last_place, overload)
            nodes.move_to_end(number)
            if len(nodes) > REMEMBERED:
                nodes.popitem(last=False)
        self.next_number = next_number


class ForwardLines:
    """The forward threads of a process, and what their nodes came from."""

    def __init__(self) -> None:
        self._threads: list[ForwardThread] = []
        self._lock = threading.Lock()

    def new_thread(self) -> ForwardThread:
        """A record for a thread that has not been seen before."""
        thread = ForwardThread()
        with self._lock:
            self._threads.append(thread)
            del self._threads[:-64]  # threads come and go; their nodes do not live for ever
        return thread

    def place_of(self, node: Any) -> int:
        """The place of the forward of the node that a backward is in, 0 where it is not known.

        Where several threads have made nodes of that number, the one whose call bears the node's name.
        """
        number = node._sequence_nr()
        found = [made for thread in self._threads if (made := thread.nodes.get(number))]
        if not found:
            return 0
        name: str = node.name()
        if len(found) > 1:
            plain = name.lower()
            found = [made for made in found if _plain(made[2]) in plain] or found
        place, before, _ = found[-1]
        return before or place if name.endswith(_MADE_AFTERWARDS) else place


def _plain(overload: str) -> str:
    return overload.split("::")[1].split(".")[0].replace("_", "")
