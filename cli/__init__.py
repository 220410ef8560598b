"""The ``mpsmith`` command line: one module per command or group of commands, which imports what it needs when run."""

from __future__ import annotations

import io
import sys

import typer

from .. import __version__
from ..errors import MpsmithError
from ..simulator.device import inheritance
from . import (
    audit,
    build,
    check,
    compare,
    compiled_defects,
    coverage,
    doctor,
    evidence,
    kernels,
    networks,
    next_gap,
    preflight,
    registry,
    replay,
    report,
    scaffold,
    self_test,
    shader,
    shipped,
    trace,
    try_checkout,
    upstream,
    why,
)
from .ending import Commands, open_closed_streams

app = typer.Typer(
    name="mpsmith",
    cls=Commands,
    help="Find, track and replace what PyTorch's mps device lacks, sends to the CPU or gets wrong.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_AUTHORS, _MAINTAINERS = "For authors of kernels", "For maintainers"

app.command(name="audit")(audit.audit)
app.command(name="report")(report.report)
app.command(name="replay")(replay.replay)
app.command(name="trace", context_settings={"allow_interspersed_args": False})(trace.trace)
app.command(name="why")(why.why)
app.command(name="doctor")(doctor.doctor)
app.command(name="preflight")(preflight.preflight)

app.command(name="next", rich_help_panel=_AUTHORS)(next_gap.next_gap)
app.command(name="scaffold", rich_help_panel=_AUTHORS)(scaffold.scaffold)
app.command(name="check", rich_help_panel=_AUTHORS)(check.check)
app.command(name="build", rich_help_panel=_AUTHORS)(build.build)
app.command(name="try", rich_help_panel=_AUTHORS)(try_checkout.try_checkout)
app.add_typer(kernels.app, name="kernels", rich_help_panel=_AUTHORS)
app.add_typer(shader.app, name="shader", rich_help_panel=_AUTHORS)
app.add_typer(upstream.app, name="upstream", rich_help_panel=_AUTHORS)
app.add_typer(registry.app, name="registry", rich_help_panel=_AUTHORS)

app.command(name="coverage", rich_help_panel=_MAINTAINERS)(coverage.coverage)
app.add_typer(shipped.app, name="shipped", rich_help_panel=_MAINTAINERS)
app.add_typer(compiled_defects.app, name="compiled", rich_help_panel=_MAINTAINERS)
app.command(name="compare", rich_help_panel=_MAINTAINERS)(compare.compare)
app.command(name="networks", rich_help_panel=_MAINTAINERS)(networks.networks)
app.add_typer(evidence.app, name="evidence", rich_help_panel=_MAINTAINERS)
app.command(name="self-test", rich_help_panel=_MAINTAINERS)(self_test.self_test)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"mpsmith {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    pass


def main() -> None:
    """Run the command line; a user's error is one line on stderr and a non-zero exit."""
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows ASCII alone shows ? for ×
    inheritance.forget()  # each command opens the device that it wants, before torch could open another
    try:
        app()
    except MpsmithError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
