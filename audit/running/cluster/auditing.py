"""An audit on a cluster, from its start to its end."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from pathlib import Path

from ...model.selection import Settings
from ...store.records import Run
from ...store.store import Store
from ..runner import as_recorded, audit_into, exclusive, resumable
from .connection import Connection
from .execution import ClusterExecution
from .members import Members, device_of
from .messages import AuditOptions


def audit_on_cluster(settings: Settings, path: Path, address: str, *, resume: bool, say: Callable[[str], None]) -> Run:
    """Run an audit on the workers of the Dask scheduler at `address`, into the store at `path`.

    Args:
        settings: of the audit; its number of workers is not used.
        path: the store.
        address: as Dask writes it: tcp://host:8786, or tls:// with its configuration.
        resume: continue an audit that was stopped, on a cluster or on this machine.
        say: prints a line of progress.

    Raises:
        StoreError: the store cannot be used, or another audit is writing to it.
        MpsmithError: as `run_audit` does; also if the cluster cannot be used or is gone.
        KeyboardInterrupt: stopped by the user; everything that had finished is in the store.
    """
    with ExitStack() as ends:
        ends.enter_context(exclusive(path))
        store = ends.enter_context(Store.open_or_create(path))
        connection = ends.enter_context(Connection(address))
        unfinished = resumable(store) if resume else None
        if unfinished is not None:
            settings = as_recorded(unfinished, settings)
        options = AuditOptions.of(settings, uuid.uuid4().hex)
        # Leave no process of this audit on any machine that can be reached.
        ends.callback(connection.end_sessions, options.audit)
        device = device_of(unfinished.environment) if unfinished else None
        members = Members(connection, options, say, device)
        members.choose_device()
        execution = ClusterExecution(store, connection, options, members)
        return audit_into(store, settings, unfinished, say, lambda *_: nullcontext(execution))
