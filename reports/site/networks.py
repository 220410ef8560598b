"""The page of networks, from what `mpsmith networks --json` printed."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from ...errors import MpsmithError
from ..tables import Table

NOT_YET = "not yet"


class _Data(BaseModel):
    model_config = ConfigDict(extra="ignore")


class Since(_Data):
    """The first release of an unbroken row without a fallback; None where the newest one has one."""

    release: str | None
    at_latest: bool = False

    def __str__(self) -> str:
        return f"{self.release}{' or before' if self.at_latest else ''}" if self.release else NOT_YET


class Lacking(_Data):
    """What of one network has no kernel on one release."""

    fallback: list[str] = []
    missing: list[str] = []
    unknown: list[str] = []
    replaced_by_kernels: list[str] = []

    @property
    def lacking(self) -> set[str]:
        """The overloads that run on the CPU, or not at all."""
        return {*self.fallback, *self.missing}

    @property
    def in_short(self) -> str:
        """How many lack a kernel, and how many still do with ours: `5 > 2`; `?` where more is not known."""
        remaining = self.lacking - set(self.replaced_by_kernels)
        counts = f"{len(self.lacking)} > {len(remaining)}" if self.replaced_by_kernels else str(len(self.lacking))
        return counts + "?" * bool(self.unknown)


class Network(_Data):
    """One network in each mode that was run, such as inference or training."""

    network: str
    recorded_with: str
    without_fallback_since: dict[str, Since]
    with_kernels_since: dict[str, Since]
    releases: dict[str, dict[str, Lacking]]


class Networks(_Data):
    """All networks on all releases."""

    simulated: bool
    releases: list[str]
    networks: list[Network]


def read_networks(path: Path) -> Networks:
    """The networks in a file that `mpsmith networks --json` printed. Raises MpsmithError for anything else."""
    try:
        return Networks.model_validate_json(path.read_bytes())
    except OSError as error:
        raise MpsmithError(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the document"
        raise MpsmithError(
            f"{path} has no networks: {place}: {first['msg']} (write it with `mpsmith networks --json > {path}`)"
        ) from None


def networks_lead(networks: Networks) -> list[str]:
    """The sentences at the top of the page."""
    lines = [
        "What each network calls was recorded on one torch; whether a release has a kernel for it is read from the "
        "data of its macOS wheel. That a call has a kernel does not say that it is right."
    ]
    if networks.simulated:
        lines.append("The recording was made on a SIMULATED mps device.")
    return lines


def network_tables(networks: Networks) -> list[Table]:
    """Since which release each network runs without a fallback, and what is lacking where."""
    found = [_since(networks), *_by_release(networks), _operators(networks)]
    return [table for table in found if table.rows]


def _since(networks: Networks) -> Table:
    rows = []
    for each in networks.networks:
        for mode, since in each.without_fallback_since.items():
            with_kernels = each.with_kernels_since.get(mode, Since(release=None))
            rows.append((each.network, mode, str(since), str(with_kernels), each.recorded_with))
    return Table(
        "Since which release networks run without a fallback",
        ("network", "mode", "without a fallback since", "with import mpsmith.kernels since", "recorded with torch"),
        tuple(rows),
        "`or before`: the release before lacks nothing that is known, and would call operators that were not recorded.",
    )


def _by_release(networks: Networks) -> list[Table]:
    modes = dict.fromkeys(mode for each in networks.networks for mode in each.releases)
    return [
        Table(
            f"Operators without a kernel, by release: {mode}",
            ("network", *reversed(networks.releases)),
            tuple(
                (each.network, *(_cell(each.releases[mode], release) for release in reversed(networks.releases)))
                for each in networks.networks
                if mode in each.releases
            ),
            "Overloads that run on the CPU, or not at all. `5 > 2`: two remain after `import mpsmith.kernels`. `?`: it "
            "would call operators that were not recorded.",
        )
        for mode in modes
    ]


def _cell(on: dict[str, Lacking], release: str) -> str:
    return on[release].in_short if release in on else ""


def _operators(networks: Networks) -> Table:
    """The operators that some network lacks on the newest release, or was lacking on an earlier one."""
    where: defaultdict[str, dict[str, None]] = defaultdict(dict)
    used: defaultdict[str, dict[str, None]] = defaultdict(dict)
    replaced: set[str] = set()
    for each in networks.networks:
        for on in each.releases.values():
            for release, found in on.items():
                replaced.update(found.replaced_by_kernels)
                for overload in sorted(found.lacking):
                    where[overload][release] = None
                    used[overload][each.network] = None
    order = {release: number for number, release in enumerate(networks.releases)}
    rows = []
    for overload in sorted(where):
        releases = sorted(where[overload], key=lambda release: order.get(release, -1))
        span = releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"
        rows.append((overload, span, "yes" if overload in replaced else "no", ", ".join(used[overload])))
    return Table(
        "Operators that networks lack",
        ("operator", "lacking in", "kernel of ours", "networks"),
        tuple(rows),
        "In the first and the last of these releases, and not always in each between.",
        frozenset({"operator"}),
    )
