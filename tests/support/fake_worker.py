"""Given to a Dask worker with --preload: its sessions are those of pretended machines."""

from __future__ import annotations

from mpsmith.audit.running.cluster import tasks

tasks.COMMAND = ("-m", "support.fake_machines")
