"""The headlines of well-known operators, checked by hand against upstream's yaml and MPSFallback.mm."""

from pathlib import Path

import pytest
import yaml

from mpsmith.audit.answers.answer import answer
from mpsmith.audit.answers.support import Support

ROWS = yaml.safe_load(Path(__file__).with_name("well_known_operators.yaml").read_text("utf-8"))
HEADLINES = [(name, Support[support], since, upgrade) for name, support, since, upgrade in ROWS]


@pytest.mark.parametrize(("name", "support", "since", "upgrade"), HEADLINES)
def test_the_headline_of_a_well_known_operator(
    name: str, support: Support, since: str | None, upgrade: str | None
) -> None:
    reply = answer(name)
    assert (reply.support, reply.since, reply.upgrade) == (support, since, upgrade)


def test_there_are_sixty() -> None:
    assert len({name for name, *_ in HEADLINES}) >= 60
