"""Inputs on which no result depends reach the report, from the notes of the groups that found them."""

from __future__ import annotations

from pathlib import Path

from mpsmith.audit.findings.results import InputWithoutEffect
from mpsmith.audit.findings.run_data import read_run
from mpsmith.audit.findings.summary import summarize
from mpsmith.audit.findings.without_effect import without_effect
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import WITHOUT_EFFECT, CaseVerdict, Outcome
from mpsmith.audit.releases.surface import installed_surface
from mpsmith.reports.run_tables import without_effect_table
from support.stores import begun, new_store


def key(dtype: str) -> GroupKey:
    return GroupKey("schema", "native_dropout_backward", "", dtype, "fallback")


def test_an_input_without_effect_is_in_the_report(tmp_path: Path) -> None:
    passed = Outcome(CaseVerdict.PASSED)
    noted = Outcome(CaseVerdict.PASSED, message=f"only the shape was compared; {WITHOUT_EFFECT}mask, scale")
    with new_store(tmp_path) as store:
        recording = begun(store)
        recording.add(key("float32"), passed, noted)
        recording.add(key("float16"), Outcome(CaseVerdict.PASSED, message=f"{WITHOUT_EFFECT}mask"))
        recording.add(key("bfloat16"), passed)
        run = recording.finish()
        name = "native_dropout_backward"
        assert without_effect(read_run(store, run)) == (
            InputWithoutEffect(name, "mask", 2, 3),
            InputWithoutEffect(name, "scale", 1, 3),
        )
        summary = summarize(store, run, installed_surface())
    table = without_effect_table(summary)
    assert table.rows == ((name, "mask", "2 of 3"),)
    assert "1 more are in fewer" in table.note
