"""The findings are wrong in the releases that they say, by the releases' own kernels, and right from those they say."""

from __future__ import annotations

import pytest

from mpsmith.audit.model.verdicts import UlpSensitivity
from mpsmith.audit.running.finding_launches import launch_findings
from mpsmith.registry.found_wrong import of_kernels
from mpsmith.registry.torch_release import is_older
from support.shipped_kernels import RELEASES, library_of

pytestmark = pytest.mark.network


@pytest.mark.parametrize("release", RELEASES)
def test_each_finding_is_wrong_where_it_says(release: str) -> None:
    library_of(release)
    findings = of_kernels()
    results = {result.name: result for result in launch_findings(release, list(findings.values()))}
    for name, finding in findings.items():
        affected = not is_older(release, finding.wrong_in[0]) and not is_older(finding.wrong_in[1], release)
        assert results[name].is_wrong is affected, results[name]
        if finding.right_from is not None and not is_older(release, finding.right_from):
            assert results[name].is_right
        if affected:
            assert results[name].ulp_sensitivity in (UlpSensitivity.EXACT, UlpSensitivity.INSENSITIVE)
