"""Verifies and times each kernel family in a separate process, so that a crash or a hang fails one family."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import asdict, dataclass
from functools import cache
from multiprocessing import get_context

from pebble import ProcessExpired, ProcessPool

from ...audit.running.worker_exit import DEVICE_LOST
from ...errors import MpsmithError, one_line
from ...registry.model import in_dtype_order
from .files import EvidenceError
from .privacy import PrivateNames, message_of
from .schema import LONGEST_MESSAGE, KernelFailure, KernelRow, KernelTiming

# Makes mps usable in a fresh process, before torch is imported; returns whether it is the simulated device.
OpenDevice = Callable[[], bool]

# Wall time for one family: a Mac needs seconds for the slowest, the simulated device minutes.
SECONDS_PER_FAMILY = 900.0
_LISTED_FAILURES = 20
# Elements of the largest timed tensor; on the simulated device shaders run on the CPU.
ELEMENTS, ELEMENTS_SIMULATED = 2**20, 2**10


@dataclass(frozen=True)
class KernelTask:
    """One family for one process.

    Attributes:
        open_device: pickled by its name; see OpenDevice.
        simulated: whether the audit ran on the simulated device.
        private: names to remove from messages.
    """

    family: str
    open_device: OpenDevice
    simulated: bool
    private: PrivateNames


def run_kernels(
    tasks: Sequence[KernelTask], report: Callable[[str], None], seconds: float = SECONDS_PER_FAMILY
) -> list[KernelRow]:
    """A row for each task: the family is verified and timed, in at most `seconds` of wall time.

    `report` receives the name of each finished family. Raises EvidenceError if the device cannot be opened.
    """
    rows = []
    for row in _measured(tasks, seconds):
        rows.append(row)
        report(row.family)
    return rows


def _measured(tasks: Sequence[KernelTask], seconds: float) -> Iterator[KernelRow]:
    if not tasks:
        return
    # torch must load after the variables are set, and the context of a GPU does not survive a fork.
    pool = ProcessPool(max_workers=1, context=get_context("spawn"))
    try:
        for task in tasks:
            future = pool.schedule(measure_family, args=[task], timeout=seconds)
            try:
                yield future.result()
            except ProcessExpired as expired:
                code = expired.exitcode
                cause = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
                stopped = "the device computed nothing after its kernels ran"
                yield _failed_row(task, stopped if code == DEVICE_LOST else f"its process ended with {cause}")
            except FutureTimeoutError:
                yield _failed_row(task, f"it did not end in {seconds:.0f} seconds")
            except MpsmithError as error:
                raise EvidenceError(f"the kernels cannot be verified: {error}") from error
        pool.close()
    except BaseException:
        pool.stop()
        raise
    finally:
        pool.join()


def _failed_row(task: KernelTask, why: str) -> KernelRow:
    from ...kernels.verification.evidence import source_digest

    return KernelRow(family=task.family, simulated=task.simulated, source=source_digest(task.family), ended=why)


# ---- in the process of a family


def measure_family(task: KernelTask) -> KernelRow:
    """Verify and time one family on the device of this process.

    Raises MpsmithError if the device cannot be opened, or is not the one that was audited.
    """
    os.environ["MPSMITH_KERNELS"] = "off"
    os.environ.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "1")
    os.environ.setdefault("MPSMITH_METAL_MODE", "fast")
    if _opened(task.open_device) != task.simulated:
        raise MpsmithError("the kernels ran on another kind of device than the audit")
    from ...kernels.verification.computing import StoppedDeviceError
    from ...kernels.verification.evidence import source_digest
    from ...kernels.verification.verify import verify

    try:
        result = verify(task.family)
        timing, untimed = _timed(task)
    except StoppedDeviceError:
        os._exit(DEVICE_LOST)  # the next family needs another process
    return KernelRow(
        family=task.family,
        simulated=task.simulated,
        source=source_digest(task.family),
        operators=sorted(result.operators),
        cases=result.cases,
        without_reference=result.without_reference,
        failed=len(result.failures),
        failures=[
            KernelFailure(what=_message(failure.what, task), reason=_message(failure.reason, task))
            for failure in result.failures[:_LISTED_FAILURES]
        ],
        checks=sorted(result.checks),
        dtypes=in_dtype_order(sorted(result.dtypes)),
        native=len(result.native),
        timing=timing,
        untimed=untimed,
    )


@cache
def _opened(open_device: OpenDevice) -> bool:
    return open_device()


def _timed(task: KernelTask) -> tuple[KernelTiming | None, str]:
    from ...kernels.verification.computing import StoppedDeviceError
    from ...kernels.verification.timing import measure

    try:
        timing = measure(task.family, ELEMENTS_SIMULATED if task.simulated else ELEMENTS)
    except StoppedDeviceError:
        raise
    except Exception as error:  # whatever the device raises, the verification is kept
        return None, _message(one_line(error), task)
    return KernelTiming.model_validate(asdict(timing)), ""


def _message(text: str, task: KernelTask) -> str:
    return message_of(text, task.private, LONGEST_MESSAGE)
