"""A Dask scheduler and Dask workers with pretended machines, as processes of this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from distributed import Client

TESTS = Path(__file__).parents[1]


class DaskProcesses:
    """A scheduler on a free port, and workers that are started one by one; all are ended with the context."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        port = self.address.rpartition(":")[2]
        self.scheduler = self._started("dask_scheduler", {}, "--host", "127.0.0.1", "--port", port, "--no-dashboard")
        self.workers: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> DaskProcesses:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for process in (*self.workers.values(), self.scheduler):
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()

    def start(self, name: str, variables: Mapping[str, str] | None = None, *, preload: bool = True) -> None:
        """Start a worker with one thread; with these variables in its environment beside those of this process."""
        arguments = ["--preload", "support.pretended_worker"] if preload else []
        self.workers[name] = self._started(
            "dask_worker",
            variables or {},
            self.address,
            *("--no-nanny", "--nthreads", "1", "--no-dashboard", "--name", name),
            *("--local-directory", str(self._folder / name)),
            *arguments,
        )

    def wait(self, workers: int) -> None:
        """Until so many workers are there."""
        with Client(self.address, set_as_default=False, timeout=60) as client:
            client.wait_for_workers(workers, timeout=120)

    def _started(self, what: str, variables: Mapping[str, str], *arguments: str) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
        log = (self._folder / f"{what}.log").open("ab")
        environment = {**os.environ, **variables, "PYTHONPATH": path}
        command = [sys.executable, "-m", f"distributed.cli.{what}", *arguments]
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log)
