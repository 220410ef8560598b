"""Records every operator call on mps, in all threads and in backward, into the journal.

A TorchDispatchMode sees calls between autograd and the device: in the thread that started it, in threads that start
meanwhile, and in the threads of the autograd engine. A composite operator runs with the mode active again, so that the
operators inside it are recorded too.
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

from .autograd_nodes import ForwardLines, ForwardThread
from .call_facts import FALLBACK, KINDS, NATIVE, SYNCHRONISATION, are_dense, copied, kind_of, tensors_of, wrapped
from .call_sites import UNKNOWN, CallSites
from .classification import OverloadTraits, traits_of
from .dispatch_keys import run
from .journal import OVERFLOW, Journal
from .patches import (
    exclude_from_dynamo,
    preserve_ctc_loss_dispatch,
    record_new_threads,
    watch_registrations,
    watch_waits,
)
from .recording import CallKind, CallSite

# The most different operands recorded for a call site; further calls are counted without operands.
OPERANDS_PER_SITE = 16

_MPS = torch._C.DispatchKeySet(torch._C.DispatchKey.MPS)
_current_node: Callable[[], Any] = torch._C._current_autograd_node
_next_node_number: Callable[[], int] = torch._C._autograd._get_sequence_nr
_profiling: Callable[[], bool] = torch._C._autograd._profiler_enabled
_push: Callable[[Any], None] = torch._C._push_on_torch_dispatch_stack
_pop: Callable[[Any], Any] = torch._C._pop_torch_dispatch_stack
# The __torch_dispatch__ of a Parameter: torch lists it among the types, but it handles no calls.
_NO_DISPATCH = torch._C._disabled_torch_dispatch_impl
_NO_ARGUMENTS: dict[str, Any] = {}


class CallRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records between `start` and `stop`.

    `journal` makes the journal at the first call on mps in each process. `lines=False` only counts calls, without call
    sites, modules, shapes and bytes. `always_falls_back`: see `traits_of`. `at_first_call` is called after the first
    call on mps.
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
        self._traits: dict[Any, OverloadTraits] = {}
        self.traits_by_overload: dict[str, OverloadTraits] = {}  # views and composites too
        self.registrations = 0
        self._registered = (0, 0, 0)
        self._call_sites = CallSites()
        self._forward_lines = ForwardLines()
        self._rows: dict[tuple[Any, ...], int] = {}
        self._operands_at: dict[tuple[Any, ...], int] = {}
        self._lock = threading.RLock()
        self._here = threading.local()
        self._undo: list[Callable[[], None]] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # otherwise each call goes through a wrapper of Dynamo

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Ignore the calls that torch.compile makes while it compiles."""
        return True

    @property
    def journal(self) -> Journal:
        """The journal of this process, made on first use."""
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
        """Start recording, in this thread and in threads that start from now on."""
        _push(self)
        self._undo = [
            lambda: _pop(None),
            record_new_threads(self.in_this_thread),
            preserve_ctc_loss_dispatch(),
            *(watch_registrations(name, self._count_registration) for name in ("impl", "_destroy")),
            watch_waits(torch.mps, "synchronize", self._record_wait),
            watch_waits(torch._tensor_str, "_str", self._record_wait),
        ]

    def stop(self) -> None:
        """Stop recording. Call it in the thread that called `start`."""
        for undo in self._undo:
            undo()
        self._undo = []

    @contextmanager
    def in_this_thread(self) -> Iterator[None]:
        """Record the calls of the current thread, which is not the one that called `start`."""
        _push(self)
        try:
            yield
        finally:
            _pop(None)

    def reset_in_child(self) -> None:
        """Forget everything that belongs to the parent process after a fork."""
        self._lock = threading.RLock()
        self._journal = None
        self._rows.clear()
        self._operands_at.clear()
        self._here = threading.local()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the call, and record it if it is on mps."""
        if kwargs is None:
            kwargs = _NO_ARGUMENTS
        if types and not all(tensor_type.__torch_dispatch__ is _NO_DISPATCH for tensor_type in types):
            return NotImplemented  # the subclass goes first; its calls come back here
        tensors = tensors_of(args, kwargs)
        on_mps = is_complex = False
        for tensor in tensors:
            on_mps |= tensor.is_mps
            is_complex |= tensor.is_complex()
        if not on_mps and (device := kwargs.get("device")) is not None:
            on_mps = device.type == "mps"
        if not on_mps:
            return run(func, args, kwargs, None, is_complex)
        traits = self._traits_of(func)
        if traits.view:
            return func(*args, **kwargs)
        if len(tensors) < len(traits.unwrapped):
            args = wrapped(traits, args)
        kind = kind_of(traits, args, kwargs)
        if traits.composite and kind == NATIVE and are_dense(tensors):
            _push(self)
            try:
                return run(func.redispatch, (_MPS, *args), kwargs, traits, is_complex)
            finally:
                _pop(None)
        start = monotonic_ns()
        try:
            if kind != NATIVE and _profiling():
                with torch.profiler.record_function(self._profiler_label(traits, kind, _caller())):
                    result = run(func, args, kwargs, traits, is_complex)
            else:
                result = run(func, args, kwargs, traits, is_complex)
        except BaseException as error:
            if kind == FALLBACK:
                refused = isinstance(error, NotImplementedError)
                self._record(traits, kind, tensors, args, None, start, _caller(), refused=refused)
            raise
        if self._lines:
            self._record(traits, kind, tensors, args, result, start, _caller())
        else:
            self._count(traits, kind, start)
        return result

    def _profiler_label(self, traits: OverloadTraits, kind: int, frame: Any) -> str:
        """The label in the user's own torch.profiler around a call that leaves the GPU."""
        site = self._call_sites.sites[self._call_sites.find(frame)] if self._lines else CallSite()
        return f"mps {KINDS[kind].value}: {traits.overload}" + (f" at {site}" if site.file else "")

    def _traits_of(self, func: Any) -> OverloadTraits:
        state = (self.registrations, len(torch.library._impls), len(sys.modules))  # modules may be C++ extensions
        if state != self._registered:
            self._registered = state
            self._traits.clear()
        traits = self._traits.get(func)
        if traits is None:
            traits = self._traits[func] = traits_of(func, self._always_falls_back)
            earlier = self.traits_by_overload.get(traits.overload)
            traits.number = earlier.number if earlier else len(self.traits_by_overload)
            self.traits_by_overload[traits.overload] = traits
        return traits

    def _count(self, traits: OverloadTraits, kind: int, start: int) -> None:
        """Count a call without call site or operands; fast for a call that already has its row."""
        duration = monotonic_ns() - start
        key = (traits.number, kind, UNKNOWN, _current_node() is None, ())
        with self._lock:
            row = self._rows.get(key)
            if (
                row is not None
                and self._thread().has_called
                and (journal := self._journal)
                and journal.process == os.getpid()
            ):
                journal.count(row, start, duration, 0, 0)
                return
        self._record(traits, kind, [], (), None, start, None)

    def _record(
        self,
        traits: OverloadTraits,
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
        site = UNKNOWN
        operands: tuple[Any, ...] = ()
        if self._lines:
            to_cpu, to_mps = copied(traits, kind, tensors, args, result)
            operands = tuple([(tensor.shape, tensor.dtype) for tensor in tensors])
            site = self._call_sites.find(frame)
            if node is None:
                if (number := _next_node_number()) != thread.forward.next_number:
                    thread.forward.add(number, site, traits.overload)
                thread.forward.last_site = site
            elif site == UNKNOWN:
                site = self._forward_lines.site_of(node)
        key = (traits.number, kind, site, node is None, operands)
        with self._lock:
            journal = self.journal
            if not thread.has_called:
                thread.has_called = True
                self._at_first_call()
            row = self._rows.get(key)
            if row is None:
                row = self._new_row(journal, traits.overload, key)
            if refused:
                journal.refuse(row)
                return
            journal.count(row, start, duration, to_cpu, to_mps)

    def _new_row(self, journal: Journal, overload: str, key: tuple[Any, ...]) -> int:
        """A new row for a new kind of call; beyond a limit, a call site has one row for all other operands.

        Memory is bounded: those other operands, and rows beyond the limit of the journal, are not remembered.
        """
        _, kind, site, forward, operands = key
        common = key[:4]
        seen = self._operands_at.get(common, 0)
        has_room = seen < OPERANDS_PER_SITE
        if not has_room and (row := self._rows.get(common)) is not None:
            return row
        shown = None
        if self._lines and has_room:
            shown = [(str(dtype).removeprefix("torch."), list(shape)) for shape, dtype in operands]
        row = journal.new_row(overload, KINDS[kind], not forward, self._call_sites.sites[site], shown)
        if row != OVERFLOW:
            self._operands_at[common] = seen + 1
            self._rows[key if has_room else common] = row
        return row

    def _count_registration(self) -> None:
        self.registrations += 1

    def _record_wait(self, name: str, start: int, frame: Any) -> None:
        """Record a wait that is not an operator."""
        site = self._call_sites.find(frame) if self._lines else UNKNOWN
        key = (name, SYNCHRONISATION, site, True, ())
        duration = monotonic_ns() - start
        with self._lock:
            row = self._rows.get(key)
            if row is None:
                row = self.journal.new_row(name, CallKind.synchronisation, False, self._call_sites.sites[site], [])
                self._rows[key] = row
            self.journal.count(row, start, duration, 0, 0)

    def _thread(self) -> _Thread:
        try:
            thread: _Thread = self._here.thread
        except AttributeError:
            with self._lock:
                thread = self._here.thread = _Thread(self._forward_lines.new_thread())
        return thread


exclude_from_dynamo(CallRecorder.__torch_dispatch__)


class _Thread:
    """A thread that has made calls on mps."""

    def __init__(self, forward: ForwardThread) -> None:
        self.forward = forward
        self.has_called = False


def _caller() -> Any:
    """The frame that called into the recorder, None in a thread of the autograd engine without Python frames."""
    return sys._getframe(1).f_back
