"""The page of the networks, docs/networks.md, as `mpsmith networks --markdown` writes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .catalog import NETWORKS
from .observation import Observation, Outcome
from .standing import NetworkStanding
from .tables import Table, by_release, lacking_operators, not_run, runs, since_which_release


def page(standings: Sequence[NetworkStanding], observations: Sequence[Observation], command: str) -> str:
    """The page; `command` is what writes it."""
    return "\n".join(_lines(standings, observations, command)) + "\n"


def _lines(standings: Sequence[NetworkStanding], observations: Sequence[Observation], command: str) -> Iterator[str]:
    releases = sorted({observation.release for observation in observations if observation.release})
    device = "the SIMULATED mps device" if any(each.simulated for each in observations) else "an mps device"
    ran = sum(observation.outcome is Outcome.ran for observation in observations)
    yield "# Networks, release by release"
    yield ""
    yield f"{len(standings)} networks, {ran} runs with torch {', '.join(releases)} on {device}."
    yield f"`{command}` writes this page;"
    yield "`mpsmith networks --model package.module:function` does the same for a network of your own: the function"
    yield "returns a torch.nn.Module and a tuple of its inputs, or a `mpsmith.networks.workload.Workload` that also"
    yield "says how a step of inference goes and what the loss is."
    yield ""
    yield from _METHOD
    yield "## Without a fallback since"
    yield ""
    yield "`not yet`: the newest release lacks something. `or before`: the release before lacks nothing that is known,"
    yield "but calls operators there that were not recorded. The last column has all modes together, after"
    yield "`import mpsmith.kernels`, which needs torch 2.7. What torch.compile calls is of the torch that ran, and says"
    yield "nothing of others."
    yield ""
    yield from _table(since_which_release(standings))
    yield ""
    yield "## Overloads without a kernel, release by release"
    yield ""
    yield "All modes but torch.compile together. `5 > 2`: two remain after `import mpsmith.kernels`. `?`: the release"
    yield "does not have an overload that was called, or makes it of others; what it calls instead is not known."
    yield ""
    yield from _table(by_release(standings))
    yield ""
    yield "## Which overloads"
    yield ""
    yield from _table(lacking_operators(standings))
    yield ""
    yield "## Each run"
    yield ""
    yield "How many different overloads reached the device, and which fell back (calls); under torch.compile how many"
    yield "Metal kernels were generated, and how often Dynamo broke the graph."
    yield ""
    yield from _table(runs(observations))
    if lines := not_run(observations):
        yield ""
        yield "## What did not run to its end"
        yield ""
        yield from (f"- {line}" for line in lines)
    yield ""
    yield "## The networks"
    yield ""
    for network in NETWORKS:
        yield f"- `{network.name}`: {network.title}" + (f" (of {network.library})" if network.library else "")


_METHOD = (
    "Each network is a small form with random weights; nothing is downloaded. It is run once in each mode, in a",
    "process with limits of time and memory: inference without gradients; a training step with AdamW; the same step",
    "under autocast, in float16 with a GradScaler; inference under torch.compile. Which overloads reach the device is",
    "recorded as `mpsmith trace` does it, with the simulated device's own counters. How an overload stands on a",
    "release is read from the data of its macOS wheel (docs/coverage.md). So this page speaks of kernels alone: not of",
    "dtypes that a kernel refuses, not of wrong numbers, and not of whether the library runs with so old a torch,",
    "whose own layers and optimizers may call other operators.",
    "",
)


def _table(table: Table) -> Iterator[str]:
    yield f"| {' | '.join(table.titles)} |"
    yield f"|{'---|' * len(table.titles)}"
    for row in table.rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
