"""`mpsmith shader`: run Metal source on this machine."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson, require_writable
from .printing import print_json

app = typer.Typer(name="shader", help="Run Metal source without a Mac, simulated on the CPU.", no_args_is_help=True)

_File = Annotated[Path, typer.Argument(metavar="FILE.metal", help="Metal source.", show_default=False)]


@app.command()
def run(
    file: _File,
    kernel: Annotated[str, typer.Argument(help="The kernel's name (host_name, if it has one).", show_default=False)],
    arg: Annotated[
        list[str] | None,
        typer.Option(
            "--arg",
            help="One for each buffer, in order: a number (2.5, 7), an array (float[1024], float[4,4]:random, "
            "int[8]:arange, half[2]:ones) or @FILE.npy.",
            show_default=False,
        ),
    ] = None,
    threads: Annotated[
        str | None, typer.Option(help="Threads in all, such as 1024 or 64,64 [default: one an element].")
    ] = None,
    group_size: Annotated[str | None, typer.Option(help="Threads of a threadgroup, such as 256 or 16,16.")] = None,
    cast: Annotated[
        list[str] | None, typer.Option("--cast", help="INDEX=fp16|bf16|int32|int16|int8|uint8 for a number.")
    ] = None,
    out: Annotated[
        list[str] | None, typer.Option("--out", help="INDEX=FILE.npy: write that array after the run.")
    ] = None,
    limit: Annotated[float, typer.Option(min=1, max=86400, help="Seconds that the kernel may run.")] = 300,
    as_json: AsJson = False,
) -> None:
    """Run one kernel of a Metal program on the CPU and print its arrays.

    MPSMITH_METAL_MODE is checked (the default), schedules or fast.
    """
    from ..errors import MpsmithError, near
    from ..simulator import metal
    from ..simulator.metal.command_line import (
        parse_argument,
        parse_casts,
        parse_outputs,
        parse_shape,
        plain_argument,
        preview,
    )
    from ..simulator.metal.modes import validate_mode

    mode = os.environ.get("MPSMITH_METAL_MODE", "checked")
    library = metal.compile(_read(file), filename=file, mode=validate_mode(mode))
    kernels = dir(library)
    if kernel not in kernels:
        there = ", ".join(kernels[:10]) or "none"
        raise MpsmithError(f"{file} has no kernel '{kernel}'{near(kernel, kernels, f'it has {there}')}")
    values = [parse_argument(text) for text in arg or []]
    outputs = parse_outputs(out or [], values)
    for path, _ in outputs:
        require_writable("--out", path)
    with _ended_after(limit, kernel):
        getattr(library, kernel)(
            *values, threads=parse_shape(threads), group_size=parse_shape(group_size), arg_casts=parse_casts(cast or [])
        )
    for path, array in outputs:
        import numpy

        path.parent.mkdir(parents=True, exist_ok=True)
        numpy.save(path, array)
    if as_json:
        written = [str(path) for path, _ in outputs]
        arguments = [plain_argument(value) for value in values]
        print_json({"simulated": True, "kernel": kernel, "mode": mode, "arguments": arguments, "written": written})
        return
    print(f"{kernel}: simulated on the CPU, mode {mode}")
    for index, value in enumerate(values):
        print(preview(index, value))
    for path, _ in outputs:
        print(f"wrote {path}")


@contextmanager
def _ended_after(limit: float, kernel: str) -> Iterator[None]:
    """End the process with an error if the block takes longer, because nothing can stop a kernel that loops forever."""

    def end() -> None:
        print(
            f"error: {kernel} did not end within {limit:g} s; --limit SECONDS gives it more",
            file=sys.stderr,
            flush=True,
        )
        os._exit(2)

    timer = threading.Timer(limit, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _read(file: Path) -> str:
    from ..errors import MpsmithError

    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise MpsmithError(f"cannot read {file}: {reason}") from error
