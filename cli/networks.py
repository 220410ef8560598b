"""``mpsmith networks``: since which release of torch none of the operators of well-known networks falls back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..simulator.opening import DeviceKind
from .options import AsJson, Profile, Workers, values_of
from .printing import print_json, say

if TYPE_CHECKING:
    from ..tracing.networks.observation import Mode, NetworkObservation


def networks(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NETWORK]...",
            help="Networks by name, such as resnet-50; default: all. Your own as MODULE:FUNCTION, which returns a "
            "torch.nn.Module and a tuple of its inputs.",
        ),
    ] = None,
    modes: Annotated[
        list[str] | None,
        typer.Option("--modes", metavar="MODE", help="inference, training, float16, bfloat16, compile; by commas."),
    ] = None,
    torch: Annotated[
        str | None,
        typer.Option(
            "--torch", metavar="RELEASE", help="List the missing operators of this release; default: the one that ran."
        ),
    ] = None,
    profile: Profile = None,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Run networks on mps and show since which release of torch none of their operators falls back.

    Continues a stopped run. Networks whose libraries are not installed are listed, and not counted.
    """
    from ..tracing.networks import catalog

    chosen = catalog.networks_named(names or ())
    own = [network for network in chosen if network.is_user_supplied]
    _check_release(torch)
    from ..audit.running.worker_limits import default_workers
    from ..reports.evidence.preflight import require_working_device
    from ..tracing.networks import output, running
    from ..tracing.networks.release_support import network_support
    from ..tracing.summary import finished_kernels

    device = DeviceKind.AUTO if profile is None else DeviceKind.SIMULATED
    options = running.RunOptions(chosen, _modes(modes), device, profile, workers or default_workers())
    try:
        observations = running.observations(options, before=lambda: require_working_device(device, say), report=_report)
    except KeyboardInterrupt:
        say("stopped; the same command continues where it was")
        raise typer.Exit(130) from None
    supports = network_support(observations, finished_kernels())
    if as_json:
        print_json(output.to_json(supports, observations))
    else:
        print(output.as_text(supports, observations, torch))
    if own and not any(support.network == network.name for network in own for support in supports):
        raise typer.Exit(1)  # a network of the user's own that did not run is what the command was asked for


def _report(observation: NetworkObservation, left: int) -> None:
    run = f"{observation.network}, {observation.mode.value}"
    say(f"{run}: {observation.outcome.value} ({observation.seconds:.1f} s), {left} to go")


def _modes(given: list[str] | None) -> tuple[Mode, ...]:
    from ..errors import MpsmithError, near
    from ..tracing.networks.observation import Mode

    chosen = []
    for name in values_of(given, "--modes"):
        if name not in Mode.__members__:
            raise MpsmithError(f"--modes {name}: one of {', '.join(Mode.__members__)}{near(name, Mode.__members__)}")
        chosen.append(Mode[name])
    return tuple(chosen) or tuple(Mode)


def _check_release(release: str | None) -> None:
    if release is not None:
        from ..audit.releases import data as release_data

        release_data.load().index(release)
