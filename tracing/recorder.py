"""Sees every operator call on mps, in all threads and in backward, and writes it into the journal.

A TorchDispatchMode stands where calls leave autograd for the device, in the thread that started it, in threads that
are started meanwhile, and in the threads of the autograd engine, to which torch hands it. A composite operator is run
with the mode in place again, so that what it is made of is seen too.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic_ns
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .classification import Conduct, conduct_of
from .forward_lines import ForwardLines, ForwardThread
from .journal import OVERFLOW, Journal
from .live_keys import run
from .patches import follow_threads, keep_dynamo_out, keep_the_way_of_ctc_loss, see_registrations, see_waiting
from .places import UNKNOWN, Places
from .recording import Kind, Place
from .single_call import FALLBACK, KINDS, NATIVE, SYNCHRONISATION, are_dense, copied, kind_of, tensors_of, wrapped

# A place whose calls have had more different operands than this is counted without them.
OPERANDS_PER_PLACE = 16

_MPS = torch._C.DispatchKeySet(torch._C.DispatchKey.MPS)
_current_node: Callable[[], Any] = torch._C._current_autograd_node
_next_node_number: Callable[[], int] = torch._C._autograd._get_sequence_nr
_profiling: Callable[[], bool] = torch._C._autograd._profiler_enabled
_push: Callable[[Any], None] = torch._C._push_on_torch_dispatch_stack
_pop: Callable[[Any], Any] = torch._C._pop_torch_dispatch_stack
# What a Parameter has for __torch_dispatch__: torch names it among the types, but it handles no call itself.
_NOTHING_OF_ITS_OWN = torch._C._disabled_torch_dispatch_impl
_NO_ARGUMENTS: dict[str, Any] = {}


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records between `start` and `stop`.

    `journal` makes the place to write to, at the first call on mps in each process; `lines=False` counts alone:
    no places, modules, shapes, bytes or lines of the forward. `always_falls_back`: see `conduct_of`. `at_first_call` is
    called when the first call on mps has been made.
    """

    def __init__(
        self,
        journal: Callable[[], Journal],
        *,
        lines: bool = True,
        always_falls_back: frozenset[str] = frozenset(),
        at_first_call: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._new_journal = journal
        self._journal: Journal | None = None
        self._lines = lines
        self._always_falls_back = always_falls_back
        self._at_first_call = at_first_call
        self._conducts: dict[Any, Conduct] = {}
        self.conducts: dict[str, Conduct] = {}  # of every overload that was called on mps, views and composites too
        self.registrations = 0
        self._registered = (0, 0, 0)
        self._places = Places()
        self._forward_lines = ForwardLines()
        self._rows: dict[tuple[Any, ...], int] = {}
        self._operands_at: dict[tuple[Any, ...], int] = {}
        self._lock = threading.RLock()
        self._here = threading.local()
        self._threads = 0
        self._undo: list[Callable[[], None]] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else each call would go through a wrapper of Dynamo first

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """What torch.compile does when it compiles is no business of this mode."""
        return True

    @property
    def journal(self) -> Journal:
        """Where this process writes to; made when first asked for."""
        if self._journal is None or self._journal.process != os.getpid():
            with self._lock:
                if self._journal is None or self._journal.process != os.getpid():
                    self._journal = self._new_journal()
        return self._journal

    @property
    def has_written(self) -> bool:
        """Whether this process has a journal."""
        return self._journal is not None and self._journal.process == os.getpid()

    def start(self) -> None:
        """Record from here on: in this thread, and in those that are started from now on."""
        _push(self)
        self._undo = [
            lambda: _pop(None),
            follow_threads(self.in_this_thread),
            keep_the_way_of_ctc_loss(),
            *(see_registrations(name, self._see_registration) for name in ("impl", "_destroy")),
            see_waiting(torch.mps, "synchronize", self._see_waiting),
            see_waiting(torch._tensor_str, "_str", self._see_waiting),
        ]

    def stop(self) -> None:
        """Record no more. Call it in the thread that called `start`."""
        for undo in self._undo:
            undo()
        self._undo = []

    @contextmanager
    def in_this_thread(self) -> Iterator[None]:
        """Record what a further thread does."""
        _push(self)
        try:
            yield
        finally:
            _pop(None)

    def begin_again_in_child(self) -> None:
        """After a fork: a child shares nothing with its parent but the program."""
        self._lock = threading.RLock()
        self._journal = None
        self._rows.clear()
        self._operands_at.clear()
        self._here = threading.local()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the call as it would have run, and record it where it is one on mps."""
        if kwargs is None:
            kwargs = _NO_ARGUMENTS
        if types and not all(tensor_type.__torch_dispatch__ is _NOTHING_OF_ITS_OWN for tensor_type in types):
            return NotImplemented  # the subclass first; the calls that it makes come here
        tensors = tensors_of(args, kwargs)
        on_mps = is_complex = False
        for tensor in tensors:
            on_mps |= tensor.is_mps
            is_complex |= tensor.is_complex()
        if not on_mps and (device := kwargs.get("device")) is not None:
            on_mps = device.type == "mps"
        if not on_mps:
            return run(func, args, kwargs, None, is_complex)
        conduct = self._conduct(func)
        if conduct.view:
            return func(*args, **kwargs)
        if len(tensors) < len(conduct.unwrapped):
            args = wrapped(conduct, args)
        kind = kind_of(conduct, args, kwargs)
        if conduct.composite and kind == NATIVE and are_dense(tensors):
            _push(self)
            try:
                return run(func.redispatch, (_MPS, *args), kwargs, conduct, is_complex)
            finally:
                _pop(None)
        start = monotonic_ns()
        try:
            if kind != NATIVE and _profiling():
                with torch.profiler.record_function(self._shown_to_profiler(conduct, kind, _caller())):
                    result = run(func, args, kwargs, conduct, is_complex)
            else:
                result = run(func, args, kwargs, conduct, is_complex)
        except BaseException as error:
            if kind == FALLBACK:
                refused = isinstance(error, NotImplementedError)
                self._record(conduct, kind, tensors, args, None, start, _caller(), refused=refused)
            raise
        if self._lines:
            self._record(conduct, kind, tensors, args, result, start, _caller())
        else:
            self._count(conduct, kind, start)
        return result

    def _shown_to_profiler(self, conduct: Conduct, kind: int, frame: Any) -> str:
        """What a user's own torch.profiler shows around a call that leaves the GPU."""
        place = self._places.table[self._places.find(frame)] if self._lines else Place()
        return f"mps {KINDS[kind].value}: {conduct.overload}" + (f" at {place}" if place.file else "")

    def _conduct(self, func: Any) -> Conduct:
        known = (self.registrations, len(torch.library._impls), len(sys.modules))  # modules may be of C++
        if known != self._registered:
            self._registered = known
            self._conducts.clear()
        conduct = self._conducts.get(func)
        if conduct is None:
            conduct = self._conducts[func] = conduct_of(func, self._always_falls_back)
            known_as = self.conducts.get(conduct.overload)
            conduct.number = known_as.number if known_as else len(self.conducts)
            self.conducts[conduct.overload] = conduct
        return conduct

    def _count(self, conduct: Conduct, kind: int, start: int) -> None:
        """Record a call by counting alone, which every call of a program pays for: seen before, it has its row."""
        duration = monotonic_ns() - start
        key = (conduct.number, kind, UNKNOWN, _current_node() is None, ())
        with self._lock:
            row = self._rows.get(key)
            if (
                row is not None
                and self._thread().told
                and (journal := self._journal)
                and journal.process == os.getpid()
            ):
                journal.count(row, duration, 0, 0)
                return
        self._record(conduct, kind, [], (), None, start, None)

    def _record(
        self,
        conduct: Conduct,
        kind: int,
        tensors: list[Any],
        args: tuple[Any, ...],
        result: Any,
        start: int,
        frame: Any,
        *,
        refused: bool = False,
    ) -> None:
        duration = monotonic_ns() - start
        to_cpu = to_mps = 0
        node = _current_node()
        thread = self._thread()
        place = UNKNOWN
        operands: tuple[Any, ...] = ()
        if self._lines:
            to_cpu, to_mps = copied(conduct, kind, tensors, args, result)
            operands = tuple([(tensor.shape, tensor.dtype) for tensor in tensors])
            place = self._places.find(frame)
            if node is None:
                if (number := _next_node_number()) != thread.forward.next_number:
                    thread.forward.made(number, place, conduct.overload)
                thread.forward.last_place = place
            elif place == UNKNOWN:
                place = self._forward_lines.place_of(node)
        key = (conduct.number, kind, place, node is None, operands)
        with self._lock:
            journal = self.journal
            if not thread.told:
                thread.told = True
                journal.name_thread(thread.number, thread.name)
                self._at_first_call()
            row = self._rows.get(key)
            if row is None:
                row = self._unremembered_row(journal, conduct.overload, key)
            if refused:
                journal.refuse(row)
                return
            journal.count(row, duration, to_cpu, to_mps)
            if self._lines and row != OVERFLOW:
                journal.add_event(row, start, duration, thread.number)

    def _unremembered_row(self, journal: Journal, overload: str, key: tuple[Any, ...]) -> int:
        """A new row for calls that are unlike all before; from some number on, a place has one for all the others.

        What is remembered is bounded: those others and what the journal has no room for are looked at again each time.
        """
        _, kind, place, forward, operands = key
        common = key[:4]
        seen = self._operands_at.get(common, 0)
        told_apart = seen < OPERANDS_PER_PLACE
        if not told_apart and (row := self._rows.get(common)) is not None:
            return row
        shown = None
        if self._lines and told_apart:
            shown = [(str(dtype).removeprefix("torch."), list(shape)) for shape, dtype in operands]
        row = journal.new_row(overload, KINDS[kind], not forward, self._places.table[place], shown)
        if row != OVERFLOW:
            self._operands_at[common] = seen + 1
            self._rows[key if told_apart else common] = row
        return row

    def _see_registration(self) -> None:
        self.registrations += 1

    def _see_waiting(self, name: str, start: int, frame: Any) -> None:
        """Record a wait that is no operator."""
        place = self._places.find(frame) if self._lines else UNKNOWN
        key = (name, SYNCHRONISATION, place, True, ())
        thread = self._thread()
        duration = monotonic_ns() - start
        with self._lock:
            row = self._rows.get(key)
            if row is None:
                row = self.journal.new_row(name, Kind.synchronisation, False, self._places.table[place], [])
                self._rows[key] = row
            self.journal.count(row, duration, 0, 0)
            self.journal.add_event(row, start, duration, thread.number)

    def _thread(self) -> _Thread:
        try:
            thread: _Thread = self._here.thread
        except AttributeError:
            with self._lock:
                self._threads += 1
                thread = self._here.thread = _Thread(self._threads, self._forward_lines.new_thread())
        return thread


keep_dynamo_out(Recorder.__torch_dispatch__)


class _Thread:
    """A thread that has called something on mps."""

    def __init__(self, number: int, forward: ForwardThread) -> None:
        self.number = number
        self.forward = forward
        self.told = False
        known = threading._active.get(threading.get_ident())  # type: ignore[attr-defined]
        self.name = known.name if known else "autograd engine"  # threads of C++ have no name in Python


def _caller() -> Any:
    """The frame that called into the recorder, None in a thread of the autograd engine that runs no Python."""
    return sys._getframe(1).f_back
