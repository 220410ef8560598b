"""Every coverage profile and every case source, in a few operators: the auditor itself fails in no case.

`make test` runs the first release and the newest six, and so each source; `make test-network` runs the others.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.audit.cases.sources import case_sources
from mpsmith.audit.model.selection import Samples, Settings
from mpsmith.audit.releases import data as release_data
from mpsmith.audit.running.runner import run_audit
from mpsmith.audit.store.store import Store
from mpsmith.simulator.opening import DeviceKind

# Each source has cases of one of these.
OPERATORS = (
    "histogram.bin_ct_out",
    "linalg.lu_solve",
    "nn.AvgPool1d",
    "nn.functional.rrelu",
    "quantile",
    "rrelu",
    "scaled_dot_product_attention",
)
# A release runs these sources and one share of the others; each share is run under three releases.
PLAIN = ("known wrong", "opinfo", "modules", "schema")
SHARES = 6
RELEASES = [facts.release for facts in release_data.load().releases]
# The newest releases, with a share each, and the first one.
IN_MAKE_TEST = (RELEASES[0], *RELEASES[-SHARES:])


@pytest.mark.parametrize(
    "release",
    [pytest.param(release, marks=[] if release in IN_MAKE_TEST else [pytest.mark.rehearsal]) for release in RELEASES],
)
def test_the_auditor_never_fails(tmp_path: Path, release: str) -> None:
    others = [name for name, source in case_sources(()).items() if not source.opt_in and name not in PLAIN]
    sources = (*PLAIN, *others[RELEASES.index(release) % SHARES :: SHARES])
    settings = Settings(
        device=DeviceKind.SIMULATED,
        profile=release,
        samples=Samples.QUICK,
        sources=sources,
        ops=OPERATORS,
        dtypes=("float32",),
        workers=1,  # each loads torch and the OpInfos
    )
    run = run_audit(settings, tmp_path / "store.sqlite", resume=False, say=lambda text: None)
    with Store.open(tmp_path / "store.sqlite") as store:
        failed = store.cases(run.id, "c.verdict = 'reference failed' AND c.stage IN ('judge', 'samples')")
        assert [(case.label, case.outcome.message) for case in failed] == []
        done = [group.key for group in store.groups(run.id) if group.done]
        assert list(store.cases(run.id, "c.verdict = 'passed'"))
    assert {key.source for key in done} == set(sources)
