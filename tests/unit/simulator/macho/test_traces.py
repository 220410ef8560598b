"""The record of what host code asked of Metal."""

from mpsmith.simulator.macho.traces import Bound, Launched, parse_trace

RECORD = """graphs 3
library 81928443
copy 0 64 24
launch add_dense_float_float 6 1 1 6 1 1 0 0 0000803f 3 16 02000000
fill 8 32 0
waits 2
"""


def test_a_record_is_parsed() -> None:
    trace = parse_trace(RECORD)
    bound = {0: Bound(0, b"\0\0\x80?"), 3: Bound(16, b"\2\0\0\0")}
    assert trace.launches == [Launched("add_dense_float_float", (6, 1, 1), (6, 1, 1), bound)]
    assert (trace.copied, trace.filled, trace.waits, trace.graphs) == ([24], [32], 2, 3)
