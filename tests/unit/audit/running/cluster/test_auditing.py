"""What an audit on a cluster sets for its time alone."""

import gc

import pytest

from mpsmith.audit.running.cluster.auditing import rare_collection


def test_python_looks_for_cycles_less_often_for_as_long_as_an_audit_takes() -> None:
    before = gc.get_threshold()

    def stopped() -> None:
        with rare_collection():
            assert gc.get_threshold() == (50_000, *before[1:])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()

    assert gc.get_threshold() == before
