"""Maps autograd nodes in a backward to the call site of the forward that created them.

Autograd numbers the nodes of a thread in sequence. When the recorder sees a call, its node already exists, so the
newest number belongs to that call. Numbers in between belong to nodes that were created around calls.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

MAX_NODES = 200_000  # for each thread; older nodes are dropped

# Created after its call, when an in-place call has changed a view.
_CREATED_LATE = "CopySlices"


@dataclass
class ForwardThread:
    """The nodes of one forward thread: by number the call site, the site of the previous call, and the overload."""

    nodes: OrderedDict[int, tuple[int, int, str]] = field(default_factory=OrderedDict)
    next_number: int = 0
    last_site: int = 0

    def add(self, next_number: int, site: int, overload: str) -> None:
        """Record a call at `site`, after which the next node gets `next_number`."""
        nodes = self.nodes
        for number in range(max(self.next_number, next_number - 8), next_number):
            nodes[number] = (site, self.last_site, overload)
            nodes.move_to_end(number)
            if len(nodes) > MAX_NODES:
                nodes.popitem(last=False)
        self.next_number = next_number


class ForwardLines:
    """The forward threads of a process and the origins of their nodes."""

    def __init__(self) -> None:
        self._threads: list[ForwardThread] = []
        self._lock = threading.Lock()

    def new_thread(self) -> ForwardThread:
        """The record of a new thread."""
        thread = ForwardThread()
        with self._lock:
            self._threads.append(thread)
            del self._threads[:-64]  # bounds memory when threads come and go
        return thread

    def site_of(self, node: Any) -> int:
        """The forward call site of the node that a backward runs, 0 if it is unknown.

        If several threads have a node of that number, the overload that matches the node's name decides.
        """
        number = node._sequence_nr()
        candidates = [made for thread in self._threads if (made := thread.nodes.get(number))]
        if not candidates:
            return 0
        name: str = node.name()
        if len(candidates) > 1:
            plain = name.lower()
            candidates = [candidate for candidate in candidates if _plain(candidate[2]) in plain] or candidates
        site, before, _ = candidates[-1]
        return before or site if name.endswith(_CREATED_LATE) else site


def _plain(overload: str) -> str:
    return overload.split("::")[1].split(".")[0].replace("_", "")
