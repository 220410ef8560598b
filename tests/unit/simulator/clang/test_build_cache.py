"""Files that are kept by what they were built from: found, damaged, and old ones."""

from __future__ import annotations

import os
from pathlib import Path

from mpsmith.cache import fingerprint
from mpsmith.simulator.clang import BuildCache


def test_store_and_find(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)
    key = fingerprint("source", "flags")
    assert cache.find(key, ".so") is None
    path = cache.store(key, ".so", b"content")
    assert cache.find(key, ".so") == (path, b"content")
    assert cache.find(key, ".json") is None


def test_damaged_entry_is_removed(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)
    path = cache.store("ab" * 16, ".so", b"content")
    path.write_bytes(b"conten")
    assert cache.find("ab" * 16, ".so") is None
    assert not path.exists()


def test_old_files_are_discarded(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)
    old, new = (cache.store(key * 16, ".so", b"content") for key in ("ab", "cd"))
    month_ago = old.stat().st_mtime - 31 * 24 * 3600
    os.utime(old, (month_ago, month_ago))
    cache.discard_old(days=30)
    assert not old.exists()
    assert new.exists()


def test_recently_used_files_are_kept(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)
    long_ago = tmp_path.stat().st_mtime - 31 * 24 * 3600
    for key in ("ab", "cd"):
        os.utime(cache.store(key * 16, ".so", b"content"), (long_ago, long_ago))
    assert cache.find("ab" * 16, ".so")
    cache.discard_old(days=30)
    assert cache.find("ab" * 16, ".so")
    assert cache.find("cd" * 16, ".so") is None


def test_a_full_cache_drops_the_least_recently_used(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)
    keys = [f"{number:02}" * 16 for number in range(10)]
    for age, key in enumerate(keys):
        os.utime(cache.store(key, ".so", bytes(100)), (1e9 - age, 1e9 - age))
    cache.shrink(1000)
    assert all(cache.folder.joinpath(key[:2]).glob("*") for key in keys)
    cache.shrink(800)
    assert [bool(list((tmp_path / key[:2]).glob("*"))) for key in keys] == [True] * 6 + [False] * 4
