"""Sees every operator call on mps, in all threads and in backward, and writes it into the journal.

A TorchDispatchMode stands where calls leave autograd for the device, in the thread that started it, in threads that
are started meanwhile, and in the threads of the autograd engine, to which torch hands it. A composite operator is run
with the mode in place again, so that what it is made of is seen too.
"""

from __future__ import annotations

import functools
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
from .places import UNKNOWN, Places
from .recording import Kind

# A place whose calls have had more different operands than this is counted without them.
OPERANDS_PER_PLACE = 16

_MPS = torch._C.DispatchKeySet(torch._C.DispatchKey.MPS)
_current_node: Callable[[], Any] = torch._C._current_autograd_node
_next_node_number: Callable[[], int] = torch._C._autograd._get_sequence_nr
_push: Callable[[Any], None] = torch._C._push_on_torch_dispatch_stack
_pop: Callable[[Any], Any] = torch._C._pop_torch_dispatch_stack
_keeps_out: Callable[[Any], bool] = torch._C._dispatch_tls_is_dispatch_key_excluded
_RestoredKeys: Any = torch._C._RestorePythonTLSSnapshot  # type: ignore[attr-defined]
_AUTOCAST_MPS = torch._C.DispatchKey.AutocastMPS  # type: ignore[attr-defined]
_AUTOCAST_CPU = torch._C.DispatchKey.AutocastCPU
# Keys that stand above the mode, but that are live inside a kernel when there is no mode.
_LIVE_IN_KERNELS = (
    torch._C.DispatchKey.Conjugate,
    torch._C.DispatchKey.Negative,
    torch._C.DispatchKey.ZeroTensor,
    _AUTOCAST_MPS,
    _AUTOCAST_CPU,
)
# What a Parameter has for __torch_dispatch__: torch names it among the types, but it handles no call itself.
_NOTHING_OF_ITS_OWN = torch._C._disabled_torch_dispatch_impl
# Kinds as numbers, which are quick to compare and to look up.
KINDS = tuple(Kind)
FALLBACK, NATIVE, TO_MPS, FROM_MPS, SYNCHRONISATION = range(len(KINDS))
_NO_ARGUMENTS: dict[str, Any] = {}


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records between `start` and `stop`.

    `journal` makes the place to write to, at the first call on mps in each process; `lines=False` counts alone:
    no places, modules, shapes, bytes or lines of the forward. `always_falls_back`: see `conduct_of`.
    """

    def __init__(
        self, journal: Callable[[], Journal], *, lines: bool = True, always_falls_back: frozenset[str] = frozenset()
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._new_journal = journal
        self._journal: Journal | None = None
        self._lines = lines
        self._always_falls_back = always_falls_back
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
            _follow_threads(self),
            _keep_the_way_of_ctc_loss(),
            *(_see_registrations(self, name) for name in ("impl", "_destroy")),
            _see_waiting(self, torch.mps, "synchronize"),
            _see_waiting(self, torch._tensor_str, "_str"),
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
        tensors = _tensors(args, kwargs)
        on_mps = is_complex = False
        for tensor in tensors:
            on_mps |= tensor.is_mps
            is_complex |= tensor.is_complex()
        if not on_mps and (device := kwargs.get("device")) is not None:
            on_mps = device.type == "mps"
        if not on_mps:
            return _run(func, args, kwargs, None, is_complex)
        conduct = self._conduct(func)
        if conduct.view:
            return func(*args, **kwargs)
        if conduct.unwrapped:
            args = _wrapped(conduct, args)
        kind = _kind(conduct, args, kwargs)
        if conduct.composite and kind == NATIVE and _is_dense(tensors):
            _push(self)
            try:
                return _run(func.redispatch, (_MPS, *args), kwargs, conduct, is_complex)
            finally:
                _pop(None)
        start = monotonic_ns()
        try:
            result = _run(func, args, kwargs, conduct, is_complex)
        except BaseException as error:
            if kind == FALLBACK:
                refused = isinstance(error, NotImplementedError)
                self._record(conduct, kind, tensors, args, None, start, _caller(), refused=refused)
            raise
        self._record(conduct, kind, tensors, args, result, start, _caller())
        return result

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
            to_cpu, to_mps = _copied(conduct, kind, tensors, args, result)
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
            row = self._rows.get(key)
            if row is None:
                row = self._rows[key] = self._new_row(journal, conduct.overload, key)
            if refused:
                journal.refuse(row)
                return
            journal.count(row, duration, to_cpu, to_mps)
            if self._lines and row != OVERFLOW:
                journal.add_event(row, start, duration, thread.number)

    def _new_row(self, journal: Journal, overload: str, key: tuple[Any, ...]) -> int:
        """A row for calls that are unlike all before; from some number on, a place has one row for all the others."""
        _, kind, place, forward, operands = key
        common = key[:4]
        seen = self._operands_at[common] = self._operands_at.get(common, 0) + 1
        if seen > OPERANDS_PER_PLACE and common in self._rows:
            return self._rows[common]
        told_apart = self._lines and seen <= OPERANDS_PER_PLACE
        shown = [(str(dtype).removeprefix("torch."), list(shape)) for shape, dtype in operands] if told_apart else None
        row = journal.new_row(overload, KINDS[kind], not forward, self._places.table[place], shown)
        if seen > OPERANDS_PER_PLACE:
            self._rows[common] = row
        return row

    def see_waiting(self, name: str, start: int, frame: Any) -> None:
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


def _keep_dynamo_out() -> None:
    """Let Dynamo not compile the recorder itself, which runs among the calls that a compiled program leaves to aten."""
    dynamo = torch._C._dynamo.eval_frame
    try:
        skip = dynamo._FrameExecStrategy(dynamo._FrameAction.SKIP, dynamo._FrameAction.SKIP)  # with all that it calls
        dynamo.set_code_exec_strategy(Recorder.__torch_dispatch__.__code__, skip)
    except AttributeError:  # an older torch has no such way: it compiles some of it, in vain
        return


_keep_dynamo_out()


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


def _tensors(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The tensors among the arguments, in order, those in lists too."""
    found = []
    tensor_type = torch.Tensor
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, tensor_type):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [item for item in value if isinstance(item, tensor_type)]
    return found


def _wrapped(conduct: Conduct, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with numbers that stand for tensors as tensors of the dtype that numbers count as."""
    for place in conduct.unwrapped:
        if place < len(args) and isinstance(args[place], (int, float, complex)):
            args = (*args[:place], torch.tensor(args[place]), *args[place + 1 :])
    return args


def _kind(conduct: Conduct, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    if conduct.falls_back:
        return FALLBACK
    if conduct.copies:
        source, target = _ends_of_copy(conduct, args, kwargs)
        if source != target:
            return TO_MPS if target == "mps" else FROM_MPS
        return NATIVE
    return SYNCHRONISATION if conduct.waits and not conduct.composite else NATIVE


def _ends_of_copy(conduct: Conduct, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str]:
    """The types of the devices that a copy is from and to."""
    if conduct.overload == "aten::_to_copy":
        device = kwargs.get("device")
        source = args[0].device.type
        return source, device.type if device is not None else source
    if conduct.overload == "aten::copy_":
        return args[1].device.type, args[0].device.type
    return args[0].device.type, args[1].device.type


def _copied(conduct: Conduct, kind: int, tensors: list[Any], args: tuple[Any, ...], result: Any) -> tuple[int, int]:
    """The bytes that a call has copied to the CPU, and to the device.

    The fallback copies every tensor argument of the device to the CPU, those that are written to as well; then back
    what was written to, and the results.
    """
    if kind in (NATIVE, SYNCHRONISATION):
        return 0, 0
    if kind != FALLBACK:
        moved = _size(args[1] if conduct.overload == "aten::copy_" else args[0])
        return (moved, 0) if kind == FROM_MPS else (0, moved)
    to_cpu = sum(_size(tensor) for tensor in tensors if tensor.is_mps)
    written = sum(_size(args[position]) for position, _ in conduct.written if position < len(args))
    if not conduct.fresh or result is None:
        return to_cpu, written + (sum(map(_size, _results_out(conduct, result))) if not written else 0)
    results = result if isinstance(result, (tuple, list)) else (result,)
    fresh = sum(_size(results[position]) for position in conduct.fresh if position < len(results))
    return to_cpu, written + fresh


def _results_out(conduct: Conduct, result: Any) -> tuple[Any, ...]:
    """What an out variant returns are its outputs, which it was given by name."""
    if not conduct.written or result is None:
        return ()
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def _size(value: Any) -> int:
    """The bytes of a tensor, or of those in a list."""
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, (list, tuple)):
        return sum(map(_size, value))
    return 0


def _is_dense(tensors: list[Any]) -> bool:
    return all(
        tensor.layout is torch.strided and not tensor.is_quantized and not tensor.is_nested for tensor in tensors
    )


def _run(call: Any, args: tuple[Any, ...], kwargs: dict[str, Any], conduct: Conduct | None, is_complex: bool) -> Any:
    """Make the call. `conduct` is None for one that has nothing to do with mps.

    A mode keeps out the keys that stand above it. Inside a kernel that would change results where autocast is on, or
    where a tensor is a lazy conjugate: for such calls those keys are let in again, as they are without a mode.
    """
    with _RestoredKeys():
        autocast = not (_keeps_out(_AUTOCAST_MPS) and _keeps_out(_AUTOCAST_CPU))
    if not autocast and not is_complex:
        return call(*args, **kwargs)
    with _live_keys(conduct):
        return call(*args, **kwargs)


@contextmanager
def _live_keys(conduct: Conduct | None) -> Iterator[None]:
    with _RestoredKeys():
        kept_out_before = torch._C._dispatch_tls_local_exclude_set()
    now = torch._C._dispatch_tls_local_exclude_set()
    for key in _LIVE_IN_KERNELS:
        casts_itself = key in (_AUTOCAST_MPS, _AUTOCAST_CPU) and conduct is not None and conduct.autocasts
        if not kept_out_before.has(key) and not casts_itself:
            now = now - torch._C.DispatchKeySet(key)
    with torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), now):
        yield


def _follow_threads(recorder: Recorder) -> Callable[[], None]:
    """Let threads that are started from now on be recorded; returns what undoes it."""
    start = threading.Thread.start

    def start_recorded(thread: threading.Thread) -> None:
        run = thread.run

        def run_recorded() -> None:
            with recorder.in_this_thread():
                run()

        thread.run = run_recorded  # type: ignore[method-assign]
        start(thread)

    threading.Thread.start = start_recorded  # type: ignore[method-assign, assignment]

    def undo() -> None:
        threading.Thread.start = start  # type: ignore[method-assign]

    return undo


def _keep_the_way_of_ctc_loss() -> Callable[[], None]:
    """Let ctc_loss call what it calls without a mode; returns what undoes it.

    Where any mode is there, torch takes another way for lengths in tensors, which fails where they are on the CPU.
    Without one it reads the lengths, as is done here.
    """
    function = torch.ctc_loss

    @functools.wraps(function)
    def ctc_loss(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, *args: Any, **kw: Any) -> Any:
        if isinstance(input_lengths, torch.Tensor) and not torch.compiler.is_compiling():
            input_lengths, target_lengths = input_lengths.tolist(), target_lengths.tolist()
        return function(log_probs, targets, input_lengths, target_lengths, *args, **kw)

    torch.ctc_loss = ctc_loss

    def undo() -> None:
        torch.ctc_loss = function

    return undo


def _see_registrations(recorder: Recorder, name: str) -> Callable[[], None]:
    """Let the recorder know when kernels come or go, as at `import mpsmith.kernels`; returns what undoes it."""
    function = getattr(torch.library.Library, name)

    @functools.wraps(function)
    def seen(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        finally:
            recorder.registrations += 1

    setattr(torch.library.Library, name, seen)
    return lambda: setattr(torch.library.Library, name, function)


def _see_waiting(recorder: Recorder, owner: Any, name: str) -> Callable[[], None]:
    """Let a function of torch be recorded in which the host waits and that the mode cannot see; returns what undoes it.

    torch takes all modes away while it makes a tensor's text.
    """
    function = getattr(owner, name)
    prints = owner is torch._tensor_str

    @functools.wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        start = monotonic_ns()
        result = function(*args, **kwargs)
        if not prints or args[0].is_mps:
            recorder.see_waiting("printing a tensor" if prints else "torch.mps.synchronize", start, _caller())
        return result

    setattr(owner, name, recorded)
    return lambda: setattr(owner, name, function)
