"""What has been observed, kept between runs: a line of JSON for each network and mode, under what it depends on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from ...audit.releases.surface.native_functions import installed_release
from ...cache import cache_folder, fingerprint, fingerprint_of_code
from .catalog import Network
from .observation import Mode, Observation, Outcome

# What decides which operators are called, and what becomes of them.
_CODE = (
    *(
        "tracing.networks.builders",
        "tracing.networks.workload",
        "tracing.networks.modes",
        "tracing.networks.execution",
        "tracing.networks.observation",
    ),
    *("tracing.recorder", "tracing.classification", "tracing.single_call", "tracing.live_keys", "tracing.patches"),
    *("kernels", "simulator.device"),
)
# What another run may change although nothing else has: a machine that was busy or full.
_TRIED_AGAIN = (Outcome.timeout, Outcome.died)


class Answers:
    """The observations of one device and one state of the code.

    The file is read once and added to; a line that a stopped run has cut off is left out.
    """

    def __init__(self, device: str, profile: str | None, folder: Path | None = None) -> None:
        key = fingerprint(fingerprint_of_code(*_CODE), installed_release(), device, profile or "")
        self.path = (folder or cache_folder() / "networks") / f"{key[:16]}.jsonl"
        self._known = dict(_read(self.path))

    def known(self, network: Network, mode: Mode) -> Observation | None:
        """What was observed before; None for a network of the user's own, whose code may be another by now."""
        data = None if network.is_users else self._known.get(_key(network, mode))
        return None if data is None else Observation.from_json(data)

    def add(self, network: Network, observation: Observation) -> None:
        """Keep an observation that would be the same again."""
        if network.is_users or observation.outcome in _TRIED_AGAIN:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = {"key": _key(network, observation.mode), "observation": observation.to_json()}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def forget(self) -> None:
        """As if nothing had been observed."""
        self._known.clear()
        self.path.unlink(missing_ok=True)


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
    found = []
    for line in path.read_text("utf-8").splitlines() if path.is_file() else ():
        try:
            data = json.loads(line)
        except ValueError:
            continue
        found.append((data["key"], data["observation"]))
    return found
