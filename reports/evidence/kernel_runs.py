"""Verifies and times each family of kernels in a process of its own: one that dies or hangs costs that family alone.

What is finished goes to a file at once, a line a family, so that a collection that was stopped goes on where it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import asdict, dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path

from pebble import ProcessExpired, ProcessPool
from pydantic import ValidationError

from ...errors import MpsmithError, one_line
from ...registry.model import in_dtype_order
from .errors import EvidenceError
from .privacy import PrivateNames, message_of
from .schema import LONGEST_MESSAGE, KernelFailure, KernelRow, KernelTiming

# Makes mps usable in a fresh process, before torch is imported, and says whether it is the simulated device.
OpenDevice = Callable[[], bool]

# Wall time that one family may take: on a Mac the slowest takes some seconds, on the simulated device minutes.
SECONDS_A_FAMILY = 900.0
_FAILURES_LISTED = 20
# Of the largest tensor that is timed; shaders of the simulated device run on the CPU, and their times say nothing.
ELEMENTS, ELEMENTS_SIMULATED = 2**20, 2**10


@dataclass(frozen=True)
class KernelTask:
    """What a process is to do with one family.

    Attributes:
        family: its name.
        open_device: see OpenDevice; it is found by its name in the process.
        simulated: what the audit before said of the device.
        identity: who is taken out of messages.
    """

    family: str
    open_device: OpenDevice
    simulated: bool
    identity: PrivateNames


def run_kernels(
    tasks: Sequence[KernelTask],
    finished: Path,
    advanced: Callable[[str], None],
    seconds: float = SECONDS_A_FAMILY,
) -> list[KernelRow]:
    """A row for each task, those of `finished` as they stand there, the others verified and timed now.

    Args:
        tasks: one a family.
        finished: the file that keeps the rows; it grows by a line with each family.
        advanced: told the name of each family that is done.
        seconds: of wall time that one family may take.

    Raises EvidenceError where the device cannot be opened.
    """
    rows = kept_rows(finished, tasks)
    for family in rows:
        advanced(family)
    with finished.open("a", encoding="utf-8") as file:
        for row in _measured([task for task in tasks if task.family not in rows], seconds):
            file.write(row.model_dump_json() + "\n")
            file.flush()
            rows[row.family] = row
            advanced(row.family)
    return [rows[task.family] for task in tasks]


def kept_rows(path: Path, tasks: Sequence[KernelTask]) -> dict[str, KernelRow]:
    """The rows of a file of finished ones that still stand: of the same device, and of the kernels' present sources.

    A line that was cut off when the machine went down counts for nothing.
    """
    from ...kernels.verification.evidence import source_digest

    wanted = {task.family: task for task in tasks}
    kept: dict[str, KernelRow] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else ():
        try:
            row = KernelRow.model_validate_json(line)
        except ValidationError:
            continue
        task = wanted.get(row.family)
        if task and row.simulated == task.simulated and row.source == source_digest(row.family):
            kept[row.family] = row
    return kept


def _measured(tasks: Sequence[KernelTask], seconds: float) -> Iterator[KernelRow]:
    if not tasks:
        return
    # torch must load after the variables are set, and a GPU's context survives no fork.
    pool = ProcessPool(max_workers=1, context=get_context("spawn"))
    try:
        for task in tasks:
            future = pool.schedule(measured_family, args=[task], timeout=seconds)
            try:
                yield future.result()
            except ProcessExpired as expired:
                yield _given_up(task, f"its process ended with {_cause(expired)}")
            except FutureTimeoutError:
                yield _given_up(task, f"it did not end in {seconds:.0f} seconds")
            except MpsmithError as error:
                raise EvidenceError(f"the kernels cannot be verified: {error}") from error
        pool.close()
    except BaseException:
        pool.stop()
        raise
    finally:
        pool.join()


def _cause(expired: ProcessExpired) -> str:
    code = expired.exitcode
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def _given_up(task: KernelTask, why: str) -> KernelRow:
    from ...kernels.verification.evidence import source_digest

    return KernelRow(family=task.family, simulated=task.simulated, source=source_digest(task.family), ended=why)


# ---- in the process of a family


def measured_family(task: KernelTask) -> KernelRow:
    """Verify and time one family on the device of this process.

    Raises MpsmithError where the device cannot be opened, or is not the one that was audited.
    """
    os.environ["MPSMITH_KERNELS"] = "off"
    os.environ.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "1")
    os.environ.setdefault("MPSMITH_METAL_MODE", "fast")
    if _opened(task.open_device) != task.simulated:
        raise MpsmithError("the kernels ran on another kind of device than the audit")
    from ...kernels.verification.evidence import source_digest
    from ...kernels.verification.verify import verify

    result = verify(task.family)
    timing, untimed = _timed(task)
    return KernelRow(
        family=task.family,
        simulated=task.simulated,
        source=source_digest(task.family),
        operators=sorted(result.operators),
        cases=result.cases,
        without_reference=result.without_reference,
        failed=len(result.failures),
        failures=[
            KernelFailure(what=_told(failure.what, task), reason=_told(failure.reason, task))
            for failure in result.failures[:_FAILURES_LISTED]
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
    from ...kernels.verification.timing import measure

    try:
        timing = measure(task.family, ELEMENTS_SIMULATED if task.simulated else ELEMENTS)
    except Exception as error:  # whatever the device raises: the verification stands
        return None, _told(one_line(error), task)
    return KernelTiming.model_validate(asdict(timing)), ""


def _told(text: str, task: KernelTask) -> str:
    return message_of(text, task.identity, LONGEST_MESSAGE)
