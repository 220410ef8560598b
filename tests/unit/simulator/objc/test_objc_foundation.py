"""The Objective-C runtime, Foundation and libdispatch, each by a small program of programs/foundation.mm."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = pytest.mark.network  # Metal's declarations are fetched: mpsmith check --setup

SAYS = {
    "strings": "é€😀 -7 1.50 c 1099511627776    42% ff|4|prefix|equal",
    "numbers": "(1, 2.5, 1, -3, 0.1, 0.1)",
    "dictionaries": "2 5 nil",
    "arrays": "(a, b, d) d yes",
    "array_index": "threw: NSRangeException: index 1 beyond the 1 items of an NSArray",
    "nil_in_array": "threw: NSInvalidArgumentException: an attempt to put nil into a collection",
    "classes": "named x 121 242 kind Counter responds by name",
    "reference_counts": "1 weak is nil",
    "blocks": "111",
    "exceptions": "thrown finally through a block",
    "queues": "1 specific q",
    "message_to_nil": "0 nil",
    "urls": "1 0 /tmp/no such file does not exist",
    "dispatch_data": "xb0 1 0",
    "semaphores_and_groups": "0 1 1 0 60 ",
    "no_services": "1 0 7",
    "paths": "/a/b/k.metal k.metal metal /a/b /a/b/k lib.metallib (/, a, b, k.metal) absolute",
    "files": "(one, two) 7 é.txt nil folder nil 2 NSPOSIXErrorDomain",
    "texts": "é3-b 2 b é__b AB suffix 13",
    "raised_exception": "NSRangeException 7 is too large",
}
THROWS = {
    "semaphore_never_signalled": "waits for what nothing has signalled: on a Mac this never returns",
    "nested_dispatch_sync": "dispatch_sync on the queue that is running: on a Mac this never returns",
    "unknown_message": "-[Counter notThere]: the simulated Metal host has no such method",
    "used_after_release": "a released object was used again: ",
}


@pytest.mark.parametrize("name", SAYS)
def test_a_program_prints_the_same_as_on_a_mac(run: Callable[[str], str], name: str) -> None:
    assert run(name) == SAYS[name]


@pytest.mark.parametrize("name", THROWS)
def test_misuse_is_an_error_with_its_reason(run: Callable[[str], str], name: str) -> None:
    said = run(name)
    assert said.startswith("threw: ")
    assert THROWS[name] in said
