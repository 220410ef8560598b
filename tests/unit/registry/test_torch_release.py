"""Versions of torch: what they are, which release they belong to, which came first."""

from __future__ import annotations

from itertools import pairwise

import pytest

from mpsmith.registry.torch_release import base_version, is_older, public_version


@pytest.mark.parametrize(
    ("version", "public", "base"),
    [
        ("2.13.0", "2.13.0", "2.13.0"),
        ("2.13.0+cpu", "2.13.0", "2.13.0"),
        ("2.13.0.dev20260801", "2.13.0.dev20260801", "2.13.0"),
        ("2.13.0.dev20260801+cpu", "2.13.0.dev20260801", "2.13.0"),
        ("2.13.0a0+gitabc", "2.13.0a0", "2.13.0"),
        ("2.13.0rc1", "2.13.0rc1", "2.13.0"),
        ("2.13", "2.13", "2.13"),
        ("native_functions", "native_functions", "native_functions"),
    ],
)
def test_a_version_is_itself_and_belongs_to_a_release(version: str, public: str, base: str) -> None:
    assert (public_version(version), base_version(version)) == (public, base)


def test_releases_are_ordered_by_number_not_by_text() -> None:
    order = ["2.7", "2.7.1", "2.9.1", "2.10.0", "2.14.0.dev20260101", "2.14.0.dev20260102", "2.14.0", "3.0"]
    for earlier, later in pairwise(order):
        assert is_older(earlier, later), (earlier, later)
        assert not is_older(later, earlier), (earlier, later)
    assert not is_older("2.7", "2.7.0")
    assert is_older("2.14.0rc1", "2.14.0")


def test_a_build_is_as_old_as_its_release() -> None:
    assert not is_older("2.13.0+cpu", "2.13.0")
    assert not is_older("2.13.0", "2.13.0+cpu")


def test_rejects_versions_without_order() -> None:
    with pytest.raises(ValueError, match="'nightly' is not written like a release"):
        is_older("nightly", "2.13.0")
