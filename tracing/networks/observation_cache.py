"""Caches observations between runs: a line of JSON for each network and mode, in a file for the code and device."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from ...audit.releases.surface.native_functions import installed_release
from ...cache import cache_folder, fingerprint, fingerprint_of_code
from .catalog import Network
from .observation import Mode, NetworkObservation, NetworkOutcome

# The code that decides which operators are called and what they do.
_CODE = (
    *(
        "tracing.networks.builders",
        "tracing.networks.workload",
        "tracing.networks.modes",
        "tracing.networks.execution",
        "tracing.networks.observation",
    ),
    *("tracing.recorder", "tracing.classification", "tracing.call_facts", "tracing.dispatch_keys", "tracing.patches"),
    *("kernels", "simulator.device"),
)
# A busy machine may cause these outcomes, so they are tried again.
_NOT_CACHED = (NetworkOutcome.timeout, NetworkOutcome.died)


class ObservationCache:
    """The observations of one device and one version of the code.

    The file is read once and appended to. A line that was cut off by a stopped run is skipped.
    """

    def __init__(self, device: str, profile: str | None, folder: Path | None = None) -> None:
        key = fingerprint(fingerprint_of_code(*_CODE), installed_release(), device, profile or "")
        self.path = (folder or cache_folder() / "networks") / f"{key[:16]}.jsonl"
        self._cached = dict(_read(self.path))

    def get(self, network: Network, mode: Mode) -> NetworkObservation | None:
        """The cached observation; None for a network of the user, whose code may have changed."""
        data = None if network.is_user_supplied else self._cached.get(_key(network, mode))
        return None if data is None else NetworkObservation.from_json(data)

    def add(self, network: Network, observation: NetworkObservation) -> None:
        """Store an observation, unless another run may give a different one."""
        if network.is_user_supplied or observation.outcome in _NOT_CACHED:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = {"key": _key(network, observation.mode), "observation": observation.to_json()}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _key(network: Network, mode: Mode) -> str:
    return " ".join(
        [network.name, mode.value, *([network.library, _version(network.library)] if network.library else [])]
    )


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "absent"


def _read(path: Path) -> list[tuple[str, Mapping[str, object]]]:
    cached = []
    for line in path.read_text("utf-8").splitlines() if path.is_file() else ():
        try:
            data = json.loads(line)
        except ValueError:
            continue
        cached.append((data["key"], data["observation"]))
    return cached
