"""A Dask scheduler and workers of one thread each, as processes of this machine."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from distributed import Client


@contextmanager
def dask_cluster(
    folder: Path, workers: int, *options: str, variables: Mapping[str, str] | None = None
) -> Iterator[str]:
    """The address of a scheduler with so many workers, which have these options and variables."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    address = f"tcp://127.0.0.1:{port}"
    python = [sys.executable, "-m"]
    scheduler = [*python, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"]
    worker = [*python, "distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard", "--nthreads", "1"]
    worker += ["--local-directory", str(folder), *options]
    with (folder / "log").open("ab") as log:
        started = [
            subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **(variables or {})})
            for command in (scheduler, *[worker] * workers)
        ]
        try:
            with Client(address, set_as_default=False, timeout=120) as client:
                client.wait_for_workers(workers, timeout=120)
            yield address
        finally:
            for process in reversed(started):  # a worker that is asked to end while its scheduler ends may never end
                process.kill()
                process.wait()
