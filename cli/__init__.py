"""The ``mpsmith`` command line: one module a command or group of commands, each importing what it needs when run."""

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
    registry,
    replay,
    report,
    scaffold,
    self_test,
    shader,
    shipped,
    trace,
    upstream,
)
from .ending import Commands

app = typer.Typer(
    name="mpsmith",
    cls=Commands,
    help="Find, track and replace what PyTorch's mps device lacks, sends to the CPU or gets wrong.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="audit")(audit.audit)
app.command(name="replay")(replay.replay)
app.command(name="self-test")(self_test.self_test)
app.command(name="report")(report.report)
app.command(name="compare")(compare.compare)
app.add_typer(registry.app, name="registry")
app.add_typer(coverage.app, name="coverage")
app.add_typer(shipped.app, name="shipped")
app.add_typer(compiled_defects.app, name="compiled")
app.add_typer(shader.app, name="shader")
app.add_typer(kernels.app, name="kernels")
app.add_typer(evidence.app, name="evidence")
app.command(name="scaffold")(scaffold.scaffold)
app.command(name="check")(check.check)
app.command(name="build")(build.build)
app.add_typer(upstream.app, name="upstream")
app.command(name="next")(next_gap.next_gap)
app.command(name="trace", context_settings={"allow_interspersed_args": False})(trace.trace)
app.command(name="networks")(networks.networks)
app.command(name="doctor")(doctor.doctor)


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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows ASCII alone shows ? for ×
    inheritance.forget()  # each command opens the device that it wants, before torch could open another
    try:
        app()
    except MpsmithError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
