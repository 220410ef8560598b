"""Given to a Dask worker with --preload: its sessions are those of pretended machines."""

from __future__ import annotations

from mpsmith.cluster import tasks

tasks.COMMAND = ("-m", "support.pretended_machines")
