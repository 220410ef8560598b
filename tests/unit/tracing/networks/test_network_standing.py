"""How a release supports the operators that a network called, from a recording and the releases' data."""

from __future__ import annotations

from mpsmith.audit.answers.support import Runs
from mpsmith.audit.answers.support import Support as How
from mpsmith.audit.releases import data
from mpsmith.audit.releases.coverage import OverloadCoverage, ReleaseCoverage
from mpsmith.audit.releases.surface.overloads import Dispatch
from mpsmith.tracing.networks.observation import Called, Mode, NetworkObservation, NetworkOutcome
from mpsmith.tracing.networks.release_support import OverloadSupport, Since, network_support, since, support

NOTHING: frozenset[str] = frozenset()


def coverage(release: str, **dispatch: Dispatch) -> ReleaseCoverage:
    overloads = tuple(OverloadCoverage(name, kind, kind, "", False, False) for name, kind in dispatch.items())
    return ReleaseCoverage(release, "a test", overloads, None, {}, {}, frozenset())


def on(release: str, recorded: dict[str, Dispatch], there: dict[str, Dispatch], *composite: str) -> OverloadSupport:
    """How a release supports overloads that were all called."""
    native = {f"aten::{name}": 1 for name in recorded if name not in composite}
    called = Called(native=native, composite=tuple(f"aten::{name}" for name in composite))
    return support([called], coverage(release, **there), coverage("2.13.0", **recorded), {"aten::lacks"})


def test_distinguishes_each_way_to_dispatch() -> None:
    recorded = dict.fromkeys(("kernel", "lacks", "always", "gone"), Dispatch.NATIVE)
    there = {"kernel": Dispatch.STRUCTURED_DELEGATE, "lacks": Dispatch.MISSING, "always": Dispatch.ALWAYS_FALLS_BACK}
    supported = on("2.7.1", recorded, there)
    assert supported.native == {"aten::kernel"}
    assert supported.missing == {"aten::lacks"}
    assert supported.fallback == {"aten::always"}
    assert supported.unknown == {"aten::gone"}
    assert supported.replaced == {"aten::lacks"}
    assert supported.remaining == {"aten::always"}


def test_kernels_replace_nothing_on_a_torch_that_is_too_old_for_them() -> None:
    supported = on("2.6.0", {"lacks": Dispatch.NATIVE}, {"lacks": Dispatch.MISSING})
    assert (supported.replaced, supported.remaining) == (NOTHING, {"aten::lacks"})


def test_an_operator_composed_on_both_releases_is_composite() -> None:
    supported = on("2.0.1", {"made": Dispatch.COMPOSITE_EXPLICIT}, {"made": Dispatch.COMPOSITE_EXPLICIT}, "made")
    assert supported.composite == {"aten::made"}


def test_a_view_composed_on_both_releases_is_composite() -> None:
    supported = on("2.0.1", {"view": Dispatch.COMPOSITE_EXPLICIT}, {"view": Dispatch.COMPOSITE_EXPLICIT})
    assert (supported.composite, supported.unknown) == ({"aten::view"}, NOTHING)


def test_an_operator_composed_only_there_is_unknown() -> None:
    supported = on("2.0.1", {"fused": Dispatch.NATIVE}, {"fused": Dispatch.COMPOSITE_IMPLICIT})
    assert supported.unknown == {"aten::fused"}


def test_an_operator_composed_only_there_is_judged_by_its_parts() -> None:
    there = coverage("2.14.1", fused=Dispatch.COMPOSITE_IMPLICIT)
    recorded = coverage("2.13.0", fused=Dispatch.ALWAYS_FALLS_BACK)

    def supported(runs: Runs) -> OverloadSupport:
        return support([Called(native={"aten::fused": 1})], there, recorded, (), {"fused": runs}.__getitem__)

    works = supported(Runs(How.WORKS, {}, composite=True))
    assert (works.composite, works.unknown, works.lacking) == ({"aten::fused"}, NOTHING, NOTHING)
    lacks = supported(Runs(How.NO, {"part": 1.0}, composite=True))
    assert (lacks.composite, lacks.missing) == ({"aten::fused"}, {"aten::part"})
    uncertain = supported(Runs(How.WORKS, {}, composite=True, uncertain=True))
    assert uncertain.unknown == {"aten::fused"}


def test_the_svd_of_torch_2_14_is_composed_of_a_native_part() -> None:
    called = Called(fell_back={"aten::linalg_svd": 1})
    run = NetworkObservation("svd", Mode.inference, NetworkOutcome.ran, release="2.13.0", called=called)
    (support,) = network_support([run], {"aten::linalg_svd"})
    assert support.together["2.13.0"].lacking == {"aten::linalg_svd"}
    assert support.together["2.14.1"].composite == {"aten::linalg_svd"}
    assert since(support.together) == Since("2.14.1")


def test_a_structured_operator_without_a_kernel_is_judged_by_its_out_variant() -> None:
    """It is composite at run time although it is declared as missing."""
    lacking = {"structured": Dispatch.MISSING}
    assert on("2.0.1", lacking, lacking, "structured").lacking == NOTHING
    assert on("2.0.1", lacking, {"structured": Dispatch.NATIVE}, "structured").native == {"aten::structured"}


def test_operators_of_other_libraries_are_left_out() -> None:
    called = Called(native={"torchvision::nms": 1})
    supported = support([called], coverage("2.0.1"), coverage("2.13.0"), ())
    assert supported.unknown == NOTHING


def releases(*kinds: str) -> dict[str, OverloadSupport]:
    """The support of releases 1, 2, ...: `well`, `lacking`, `replaced` or `unknown`."""
    names = frozenset({"aten::a"})
    return {
        str(number): OverloadSupport(
            native=NOTHING,
            composite=NOTHING,
            fallback=NOTHING,
            missing=names if kind in ("lacking", "replaced") else NOTHING,
            unknown=names if kind == "unknown" else NOTHING,
            replaced=names if kind == "replaced" else NOTHING,
        )
        for number, kind in enumerate(kinds, 1)
    }


def test_since_is_the_start_of_the_last_row_without_a_gap() -> None:
    assert since(releases("well", "lacking", "well", "well")) == Since("3")
    assert since(releases("well", "lacking")) == Since(None)
    assert since(releases("well", "unknown", "well")) == Since("3", at_latest=True)
    assert since(releases("lacking", "replaced"), with_kernels=True) == Since("2")
    assert [str(release) for release in (Since("3"), Since("3", at_latest=True), Since(None))] == [
        "3",
        "3 or before",
        "not yet",
    ]


def observation(mode: Mode, *overloads: str, outcome: NetworkOutcome = NetworkOutcome.ran) -> NetworkObservation:
    return NetworkObservation("net", mode, outcome, release="2.13.0", called=Called(native=dict.fromkeys(overloads, 1)))


def test_networks_are_joined_with_the_data_of_all_releases() -> None:
    (supported,) = network_support(
        [
            observation(Mode.inference, "aten::softshrink.out", "aten::add.Tensor"),
            observation(Mode.compile, "aten::mode"),
            observation(Mode.training, "aten::mode", outcome=NetworkOutcome.failed),
        ],
        {"aten::softshrink"},
    )
    assert list(supported.together) == [facts.release for facts in data.load_facts()]
    assert list(supported.by_mode) == [Mode.inference], (
        "neither what fails nor what is compiled applies to other releases"
    )
    history = data.load().overloads["softshrink.out"].dispatch
    lacking = [release for release, support in supported.together.items() if support.lacking]
    assert lacking == [
        facts.release for facts, kind in zip(data.load_facts(), history, strict=True) if kind == "missing"
    ]


def test_a_network_that_did_not_run_has_no_row() -> None:
    assert network_support([observation(Mode.inference, outcome=NetworkOutcome.not_installed)], ()) == []
