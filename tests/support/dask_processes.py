"""A Dask scheduler and Dask workers with pretended machines, as processes of this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from distributed import Client

TESTS = Path(__file__).parents[1]


class Cable:
    """What a worker reaches its scheduler through, until it is cut."""

    def __init__(self, scheduler: str) -> None:
        host, _, port = scheduler.removeprefix("tcp://").partition(":")
        self._scheduler = host, int(port)
        self._ends: list[socket.socket] = []
        self._entry = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._entry.getsockname()[1]}"
        threading.Thread(target=self._connect, daemon=True).start()

    def cut(self) -> None:
        """Nothing gets through any more."""
        for end in (self._entry, *self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _connect(self) -> None:
        with contextlib.suppress(OSError):  # it was cut
            while True:
                near, _ = self._entry.accept()
                far = socket.create_connection(self._scheduler)
                self._ends += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    @staticmethod
    def _carry(one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while carried := one.recv(1 << 16):
                other.sendall(carried)
            other.shutdown(socket.SHUT_WR)


@dataclass(frozen=True)
class Encryption:
    """What a scheduler and a worker are given beside their addresses to talk TLS; its files lie in `folder`."""

    folder: Path
    of_scheduler: Sequence[str]
    of_worker: Sequence[str]


class DaskProcesses:
    """A scheduler on a free port, and workers that are started one by one; all are ended with the context."""

    def __init__(self, folder: Path, encryption: Encryption | None = None) -> None:
        self._folder = folder
        self._encryption = encryption
        scheme = "tcp" if encryption is None else "tls"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"{scheme}://127.0.0.1:{free.getsockname()[1]}"
        arguments = ["--host", f"{scheme}://127.0.0.1", "--port", self.address.rpartition(":")[2], "--no-dashboard"]
        if encryption is not None:
            arguments += encryption.of_scheduler
        self.scheduler = self._started("dask_scheduler", {}, *arguments)
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self.cables: dict[str, Cable] = {}

    def __enter__(self) -> DaskProcesses:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for cable in self.cables.values():
            cable.cut()
        for process in (*self.workers.values(), self.scheduler):
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()

    def start(
        self, name: str, variables: Mapping[str, str] | None = None, *, preload: bool = True, by_cable: bool = False
    ) -> None:
        """Start a worker with one thread; with these variables in its environment beside those of this process.

        One that reaches the scheduler by a cable can be cut off.
        """
        arguments = ["--preload", "support.fake_worker"] if preload else []
        if self._encryption is not None:
            arguments += self._encryption.of_worker
        address = self.address
        if by_cable:
            self.cables[name] = Cable(self.address)
            address = self.cables[name].address
        self.workers[name] = self._started(
            "dask_worker",
            variables or {},
            address,
            *("--no-nanny", "--nthreads", "1", "--no-dashboard", "--name", name),
            *("--local-directory", str(self._folder / name)),
            *arguments,
        )

    def cut_off(self, process: int) -> None:
        """The worker of this process is there, and the scheduler hears no more of it."""
        (name,) = [name for name, worker in self.workers.items() if worker.pid == process]
        self.cables[name].cut()

    def wait(self, workers: int) -> None:
        """Until so many workers are there."""
        with Client(self.address, set_as_default=False, timeout=60) as client:
            client.wait_for_workers(workers, timeout=120)

    def _started(self, what: str, variables: Mapping[str, str], *arguments: str) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
        log = (self._folder / f"{what}.log").open("ab")
        environment = {**os.environ, **variables, "PYTHONPATH": path}
        command = [sys.executable, "-m", f"distributed.cli.{what}", *arguments]
        here = None if self._encryption is None else self._encryption.folder
        return subprocess.Popen(command, env=environment, cwd=here, stdout=log, stderr=log)
