"""The tables at the end of a traced program."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .recording import CallKind, CallSite
from .summary import SiteCalls, Summary, advice

# CallSites and operands of one operator that a table shows; `--json` and `--html` have all.
SHOWN = 12
# The share of the time below which the calls of one place are not a bottleneck.
BOTTLENECK = 0.01
WIDTH_OF_A_FILE = 200


def show(summary: Summary, console: Console | None = None) -> None:
    """Print what fell back, where the host waits, and what helps."""
    out = console or _console()
    for line in heading(summary):
        out.print(escape(line), soft_wrap=True)
    if summary.fallbacks:
        out.print(_fallback_table(summary))
    if summary.waits:
        out.print(_wait_table(summary))
    for line in closing(summary):
        out.print(escape(line), soft_wrap=True)


def as_text(summary: Summary) -> str:
    """The text that `show` prints."""
    out = _plain_console()
    show(summary, out)
    return out.file.getvalue().rstrip()  # type: ignore[attr-defined, no-any-return]


def as_html(summary: Summary) -> str:
    """The same for a notebook, with the tables' layout."""
    out = _plain_console()
    out.record = True
    show(summary, out)
    return out.export_html(inline_styles=True, code_format='<pre style="white-space:pre;overflow:auto">{code}</pre>')


def _plain_console() -> Console:
    """A console that writes plain text to a string. Set explicitly, because a notebook's kernel sets FORCE_COLOR."""
    file = io.StringIO()
    return Console(highlight=False, width=WIDTH_OF_A_FILE, file=file, force_jupyter=False, force_terminal=False)


def heading(summary: Summary) -> list[str]:
    """The totals of the recording, a line each."""
    recording = summary.recording
    lines = []
    if recording.fact("simulated"):
        lines.append(
            f"SIMULATED mps device with the coverage of torch {recording.fact('profile')}: calls and bytes are exact, "
            "times are this machine's and no GPU's"
        )
    if not recording.facts:
        return [*lines, "the program did not import torch (or its processes were not Python's): nothing was recorded"]
    total = sum(row.calls for row in recording.rows) + recording.dropped_calls
    if not total:
        return [*lines, 'the program called nothing on mps: move its model and its tensors there, with `.to("mps")`']
    if not summary.fallbacks and not summary.unseen:
        lines.append(f"no operator fell back to the CPU in {_number(total)} call{'s' * (total != 1)} on mps")
    else:
        fell_back = summary.calls(CallKind.fallback) + sum(summary.unseen.values())
        lines.append(
            f"{_number(fell_back)} of {_number(total)} calls on mps fell back to the CPU"
            + (f", {summary.share:.0%} of the time between the first and the last" if summary.share else "")
        )
    return lines


def closing(summary: Summary) -> list[str]:
    """Notes on the tables, and the advice."""
    recording = summary.recording
    lines = [
        f"{overload} fell back {_times(calls)} more where no line is known (torch's own printing, a thread older than "
        "the trace, a library of C++): the device's counters say so"
        for overload, calls in sorted(summary.unseen.items())
    ]
    refused = {row.overload: row for row in recording.rows if row.refused}
    lines += [f"{overload} was refused: it has no kernel for mps, and falling back is off" for overload in refused]
    if recording.dropped_calls:
        lines.append(f"dropped: {_number(recording.dropped_calls)} calls, too many different ones to tell apart")
    if summary.copies_to_mps:
        copied = sum(at.bytes_to_mps for at in summary.copies_to_mps)
        most = max(summary.copies_to_mps, key=lambda at: at.bytes_to_mps)
        times = _times(sum(at.calls for at in summary.copies_to_mps))
        lines.append(f"data were copied to mps {times}, {size(copied) or '0 B'}; the most at {where(most)}")
    if (elapsed := recording.fact("device_milliseconds")) is not None:
        spent = sum(at.nanoseconds for at in summary.fallbacks) / 1e6
        lines.append(
            f"by the GPU's own clock (torch.mps events) {elapsed:.2f} ms passed from the first call to the end; "
            f"the host spent {spent:.2f} ms in fallbacks"
        )
    if site := recording.fact("late_variable"):
        lines.append(
            f"{shown_file(site)} sets PYTORCH_ENABLE_MPS_FALLBACK after torch was imported, which has no effect "
            "without `mpsmith trace`: set it before the program starts"
        )
    elif summary.fallbacks and not _allowed_by_user():
        lines.append(
            "`mpsmith trace` has set PYTORCH_ENABLE_MPS_FALLBACK=1; without it the first of these calls raises "
            "NotImplementedError"
        )
    if sentence := advice(summary):
        lines.append(sentence)
    return lines


def _allowed_by_user() -> bool:
    return os.environ.get("PYTORCH_ENABLE_MPS_FALLBACK", "0") not in ("", "0")


class _Output(Console):
    """Standard output; a closed pipe raises BrokenPipeError like print, and does not exit."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def _console() -> Console:
    console = _Output(highlight=False)
    return console if console.is_terminal else _Output(highlight=False, width=WIDTH_OF_A_FILE)


def _table(*columns: str, right: Sequence[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return table


def _fallback_table(summary: Summary) -> Table:
    numbers = ("calls", "to CPU", "back", "ms", "share")
    table = _table("ran on the CPU", "calls", "where", "module", "operands", *numbers[1:], right=numbers)
    costly = [at for at in summary.fallbacks if not _is_cheap(at, summary)]
    cheap = summary.fallbacks[len(costly) :]
    for at in costly[:SHOWN]:
        table.add_row(
            escape(at.overload),
            _number(at.calls),
            escape(where(at)),
            escape(at.site.module),
            escape(_operands(at)),
            size(at.bytes_to_cpu),
            size(at.bytes_to_mps),
            f"{at.nanoseconds / 1e6:.2f}",
            share(at, summary),
        )
    _add_rest(table, len(costly))
    if cheap:
        together = sum(map(summary.share_of, cheap))
        overloads = ", ".join(dict.fromkeys(at.overload for at in cheap))
        table.add_row(escape(f"not your bottleneck, {together:.1%} of the time together: {overloads}"))
    return table


def _is_cheap(at: SiteCalls, summary: Summary) -> bool:
    """Whether calls take too little of the time to matter; never on the simulated device, whose times do not count."""
    return not summary.recording.fact("simulated") and 0 < summary.share_of(at) < BOTTLENECK


def _wait_table(summary: Summary) -> Table:
    numbers = ("calls", "to CPU", "ms", "share")
    table = _table("the host waits for the GPU in", "calls", "where", "module", *numbers[1:], right=numbers)
    for at in summary.waits[:SHOWN]:
        table.add_row(
            escape(at.overload),
            _number(at.calls),
            escape(where(at)),
            escape(at.site.module),
            size(at.bytes_to_cpu),
            f"{at.nanoseconds / 1e6:.2f}",
            share(at, summary),
        )
    _add_rest(table, len(summary.waits))
    return table


def _add_rest(table: Table, rows: int) -> None:
    if rows > SHOWN:
        table.add_row(f"... {rows - SHOWN} more: --json or --html")


def where(at: SiteCalls) -> str:
    """`train.py:12`; for a backward, the line of its forward, and the word "backward"."""
    site = shown_site(at.site)
    return f"backward of {site}" if at.backward and at.site.file else f"backward, {site}" if at.backward else site


def shown_site(site: CallSite) -> str:
    """The shortest clear path of the file, and the line."""
    return shown_file(str(site)) + (f" ({site.note})" if site.note else "")


def shown_file(text: str) -> str:
    """A path below the current folder without it."""
    return text.removeprefix(f"{Path.cwd()}{os.sep}")


def _operands(at: SiteCalls) -> str:
    first, *others = at.operands
    return first + (f" and {len(others)} other{'s' if len(others) > 1 else ''}" if others else "")


def size(number: int) -> str:
    """Bytes with a unit; "" for 0, which means that they were not counted."""
    if not number:
        return ""
    value = float(number)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def share(at: SiteCalls, summary: Summary) -> str:
    """The part of the time between the first and the last call, in percent; "" if no times are known."""
    return f"{summary.share_of(at):.1%}" if summary.elapsed else ""


def _number(value: int) -> str:
    return f"{value:,}"


def _times(calls: int) -> str:
    return "once" if calls == 1 else f"{calls:,} times"


def show_both(before: Summary, after: Summary, console: Console | None = None) -> None:
    """Print what fell back without and with `import mpsmith.kernels`, side by side."""
    out = console or _console()
    calls = [_calls_by_overload(summary) for summary in (before, after)]
    table = _table("operator on the CPU", "calls", "with mpsmith.kernels", right=("calls", "with mpsmith.kernels"))
    for overload in sorted(calls[0] | calls[1], key=lambda name: (-calls[0].get(name, 0), name)):
        table.add_row(escape(overload), *(_number(by_overload.get(overload, 0)) for by_overload in calls))
    if table.row_count:
        out.print()
        out.print(table)
    times = [sum(at.nanoseconds for at in summary.fallbacks) / 1e6 for summary in (before, after)]
    out.print(
        f"{sum(calls[0].values()):,} calls fell back, {sum(calls[1].values()):,} with mpsmith.kernels; "
        f"{times[0]:.2f} ms in fallbacks, then {times[1]:.2f} ms"
    )


def _calls_by_overload(summary: Summary) -> dict[str, int]:
    calls = dict(summary.unseen)
    for at in summary.fallbacks:
        calls[at.overload] = calls.get(at.overload, 0) + at.calls
    return calls
