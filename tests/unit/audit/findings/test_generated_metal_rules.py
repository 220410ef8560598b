"""Which known defect a finding is taken for: each defect's own program is taken for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpsmith.audit.compiled.defects.defect import Defect
from mpsmith.audit.compiled.defects.measurement_file import StoredResult, read
from mpsmith.audit.compiled.defects.table import DEFECTS
from mpsmith.audit.compiled.verdicts import CompiledVerdict, FaultyStage
from mpsmith.audit.findings.rules.generated_metal import PATTERNS, known_defect

# What an audit calls the operators of programs with these operators.
OPERATORS = {
    "U1": "nn.functional.batch_norm",
    "U7": "special.erfcx",
    "U12": "nn.functional.softshrink",
    "U21": "nn.functional.multilabel_margin_loss",
    "U25": "nn.functional.soft_margin_loss",
    "U29": "native_batch_norm",
}
# U11 shows in the code of another call; U24 and U27 in a backward, which their programs call themselves.
WITHOUT_RULE = ("U11", "U24", "U27")
MEASURED = next(release for release in read() if not release.overlay).shown


def taken_for(shown: StoredResult, operator: str, dtype: str) -> str:
    verdict, faulty_stage = (
        CompiledVerdict(shown.verdict),
        FaultyStage(shown.faulty_stage) if shown.faulty_stage else None,
    )
    return known_defect(verdict, faulty_stage, operator, (dtype,), shown.reason, shown.source)


@pytest.mark.parametrize(
    "defect", [defect for defect in DEFECTS if defect.number not in WITHOUT_RULE], ids=lambda d: d.number
)
def test_the_program_of_a_defect_is_taken_for_it(defect: Defect) -> None:
    number = defect.number
    _, inputs = defect.program()
    dtype = str(inputs[0].dtype).removeprefix("torch.")
    assert taken_for(MEASURED[number], OPERATORS.get(number, "add"), dtype) == number


def test_a_gradient_of_avg_pool_is_taken_for_its_defect() -> None:
    said = "backward: gradient 0: 12 of 18 elements differ"
    seen = (CompiledVerdict.WRONG, FaultyStage.INDUCTOR, "nn.functional.avg_pool1d", ("float32",), said, "")
    assert known_defect(*seen) == "U24"


def test_a_gradient_of_svd_is_taken_for_its_defect() -> None:
    seen = (CompiledVerdict.WRONG, FaultyStage.GRAPH, "linalg.svd", ("float32",), "backward: gradient 0 is missing", "")
    assert known_defect(*seen) == "U27"


def test_right_results_and_eager_faults_are_not_known_defects() -> None:
    log1p = MEASURED["U15"]
    for verdict, faulty_stage in ((CompiledVerdict.METAL, None), (CompiledVerdict.WRONG, FaultyStage.EAGER)):
        assert known_defect(verdict, faulty_stage, "log1p", ("float32",), log1p.reason, log1p.source) == ""


def test_every_sign_is_of_a_defect() -> None:
    assert {pattern.number for pattern in PATTERNS} <= {defect.number for defect in DEFECTS}


def test_a_product_of_narrow_integers_is_one_of_64_bits() -> None:
    prod = MEASURED["U18"]
    assert taken_for(prod, "prod", "uint8") == "U18"
    assert taken_for(replace(prod, source=prod.source.replace("long", "float")), "prod", "float32") == ""


def test_an_error_in_a_foreach_derivative_is_u26() -> None:
    said = "IndexError: select(): index 10 out of range for tensor of size [10, 10] at dimension 0"
    assert known_defect(CompiledVerdict.ERROR, None, "_foreach_addcdiv", ("float32",), said, "") == "U26"
