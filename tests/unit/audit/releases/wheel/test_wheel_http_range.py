import http.server
import io
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from mpsmith.audit.releases.coverage.sources import named_coverage
from mpsmith.audit.releases.wheel.errors import WheelError
from mpsmith.audit.releases.wheel.fetch import open_url
from mpsmith.audit.releases.wheel.http_range import FIRST_REQUEST, RangeFile


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves what the server holds, by ranges unless the path says otherwise."""

    def do_GET(self) -> None:
        data: bytes = self.server.data  # type: ignore[attr-defined]
        if self.path == "/absent":
            self.send_error(404, "Not Found")
            return
        start, stop = (int(text) for text in self.headers["Range"].removeprefix("bytes=").split("-"))
        body, status = data[start : stop + 1], 206
        if self.path == "/whole":
            body, status = data, 200
        if self.path == "/short":
            body = body[:-1] if start else body
        self.send_response(status)
        total = "*" if self.path == "/unsized" else len(data)
        self.send_header("Content-Range", f"bytes {start}-{stop}/{total}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[http.server.HTTPServer]:
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.data = bytes(range(256)) * 2000  # type: ignore[attr-defined]
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    yield served
    served.shutdown()
    thread.join()
    served.server_close()


def address(server: http.server.HTTPServer, path: str) -> str:
    return f"http://127.0.0.1:{server.server_port}/{path}"


def test_reads_requested_ranges(server: http.server.HTTPServer) -> None:
    file = RangeFile(address(server, "file"))
    data: bytes = server.data  # type: ignore[attr-defined]
    assert file.size == len(data)
    file.seek(-10, io.SEEK_END)
    assert file.read(100) == data[-10:]
    file.seek(1000)
    assert file.read(20) == data[1000:1020]
    assert file.tell() == 1020
    assert file.read() == data[1020:]
    assert file.read(1) == b""


def test_a_read_across_two_pieces_is_not_short(server: http.server.HTTPServer) -> None:
    file = RangeFile(address(server, "file"))
    file.read(FIRST_REQUEST - 5)
    data: bytes = server.data  # type: ignore[attr-defined]
    assert file.read(20) == data[FIRST_REQUEST - 5 : FIRST_REQUEST + 15]


def test_a_small_read_fetches_little(server: http.server.HTTPServer) -> None:
    file = RangeFile(address(server, "file"))
    file.read(10)
    file.read(10)
    assert file.fetched < 70_000


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("absent", "the server answered 404 Not Found"),
        ("whole", "the server does not serve ranges"),
        ("unsized", "does not say how long the file is"),
    ],
)
def test_servers_that_cannot_help(server: http.server.HTTPServer, path: str, message: str) -> None:
    with pytest.raises(WheelError, match=message):
        RangeFile(address(server, path))


def test_a_server_that_sends_too_little(server: http.server.HTTPServer) -> None:
    file = RangeFile(address(server, "short"))
    file.seek(5)
    with pytest.raises(WheelError, match="were asked for"):
        file.read(10)


def test_rejects_malformed_addresses() -> None:
    with pytest.raises(WheelError, match="is not an http or https address"):
        RangeFile("file:///etc/passwd")
    with pytest.raises(WheelError, match="cannot reach http://127"):
        RangeFile("http://127.0.0.1:1/torch.whl")


def test_a_wheel_behind_an_address(server: http.server.HTTPServer, build: SimpleNamespace) -> None:
    wheel = build.Wheel(library=build.MachO().build(), files={"padding": bytes(300_000)}, compression=0)
    server.data = wheel.packed()  # type: ignore[attr-defined]
    url = address(server, "torch.whl")
    assert open_url(url).identity.release == "2.99.0"
    coverage = named_coverage(url=url)
    assert coverage.by_name["embedding_renorm_"].registered == "fallback to CPU"
