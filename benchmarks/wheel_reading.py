"""Reading a wheel's binary or its kernels, against inflating it and a full parse with lief; a cold yaml-level answer.

Each method runs in a separate process, three times: the least processor time, which other programs disturb less than
the time on the clock, and the largest memory. The ratios are of this one run.
The wheel of RELEASE comes from mpsmith's cache, through pip where it is not there yet. lief is left out where it is not
installed (`pip install lief`).
"""

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

RELEASE = "2.15.0"
REPEATS = 3
MEGABYTE = 1e6
LIBRARY = "torch/lib/libtorch_cpu.dylib"


def main() -> None:
    from mpsmith.audit.releases.wheel.fetch import fetch_wheel

    wheel = fetch_wheel(RELEASE)
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as archive:
            unpacked = Path(archive.extract(LIBRARY, folder))
        results = {
            "inflate the member": best("inflate", wheel),
            "mpsmith, from the wheel": best("wheel", wheel),
            "the kernels that it ships, by hash": best("kernels", wheel),
            "mpsmith, from the unpacked file": best("file", unpacked),
        }
        if importlib.util.find_spec("lief"):
            results["lief, from the unpacked file"] = best("lief", unpacked)
        results["cold yaml-level answer, installed torch"] = best("cold", wheel)
    for name, result in results.items():
        held = f", of which held on purpose {result['held'] / MEGABYTE:.0f} MB" if result["held"] else ""
        print(f"  {name:42} {result['seconds']:6.2f} s {result['peak'] / MEGABYTE:7.0f} MB{held}")
    print_ratios(results)


def print_ratios(results: dict[str, dict[str, float]]) -> None:
    ours, mapped = results["mpsmith, from the wheel"], results["mpsmith, from the unpacked file"]
    inflating, kernels = results["inflate the member"], results["the kernels that it ships, by hash"]
    print(f"  time / inflating alone: {ours['seconds'] / inflating['seconds']:.2f} (at most 1.5)")
    print(f"  time of the kernels / inflating alone: {kernels['seconds'] / inflating['seconds']:.2f} (at most 1.5)")
    print(f"  peak memory / what must be held: {ours['peak'] / ours['held']:.2f} (at most 1.2)")
    lief = results.get("lief, from the unpacked file")
    if lief is None:
        print("  lief is not installed: pip install lief")
        return
    print(f"  lief's time / ours, same file: {lief['seconds'] / mapped['seconds']:.1f} (at least 5)")
    print(f"  lief's memory / ours, same file: {lief['peak'] / mapped['peak']:.1f} (at least 3)")


def best(method: str, path: Path) -> dict[str, float]:
    runs = [in_child(method, path) for _ in range(REPEATS)]
    return {
        "seconds": min(run["seconds"] for run in runs),
        "peak": max(run["peak"] for run in runs),
        "held": max(run["held"] for run in runs),
    }


def in_child(method: str, path: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.wheel_reading", "--method", method, str(path)]
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "MPSMITH_CACHE": cache}
        output = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    result: dict[str, float] = json.loads(output)
    return result


def inflate(path: Path) -> int:
    with zipfile.ZipFile(path) as archive, archive.open(LIBRARY) as stream:
        while stream.read(1 << 20):
            pass
    return 0


def read_from_wheel(path: Path) -> int:
    from mpsmith.audit.releases.wheel import byte_ranges
    from mpsmith.audit.releases.wheel.archive import open_path
    from mpsmith.audit.releases.wheel.binary import read_binary

    held = 0
    take = byte_ranges.StreamRanges.take

    def counted(self: byte_ranges.StreamRanges, offset: int, size: int) -> memoryview:
        nonlocal held
        held += size
        return take(self, offset, size)

    byte_ranges.StreamRanges.take = counted  # type: ignore[method-assign]
    check(read_binary(open_path(path)).registered("MPS"))
    return held


def read_from_file(path: Path) -> int:
    from mpsmith.audit.releases.wheel.byte_ranges import MappedRanges
    from mpsmith.audit.releases.wheel.macho import read_image
    from mpsmith.audit.releases.wheel.metallib import is_metal_section, read_library
    from mpsmith.audit.releases.wheel.registrations import read_registrations

    image = read_image(
        MappedRanges(path), is_metal_section, lambda section, source: read_library(section, source) and None
    )
    check(read_registrations(image))
    return 0


def list_kernels(path: Path) -> int:
    """Take the library out, check every module against its hash, and list them: what `mpsmith shipped list` does."""
    from mpsmith.audit.releases.wheel.shipped import named_library

    with named_library(path=path) as library:
        check([(function.name, function.sha256) for function in library.file.functions])
    return 0


def parse_with_lief(path: Path) -> int:
    import lief

    check(list(lief.MachO.parse(str(path)).at(0).symbols))
    return 0


def answer_cold(_: Path) -> int:
    from mpsmith.audit.releases.coverage.sources import installed_coverage

    check(installed_coverage().overloads)
    assert "torch" not in sys.modules
    return 0


def check(found: object) -> None:
    if not found:
        raise SystemExit("nothing was read: the benchmark would measure nothing")


METHODS: dict[str, Callable[[Path], int]] = {
    "inflate": inflate,
    "wheel": read_from_wheel,
    "file": read_from_file,
    "kernels": list_kernels,
    "lief": parse_with_lief,
    "cold": answer_cold,
}


def measure(method: str, path: Path) -> dict[str, float]:
    """Seconds and additional peak memory of one method in this process, modules imported beforehand."""
    if method in ("wheel", "file", "kernels"):
        import mpsmith.audit.releases.wheel.binary
        import mpsmith.audit.releases.wheel.shipped  # noqa: F401 - the import is not what is measured
    if method == "lief":
        import lief  # noqa: F401
    before = peak_bytes()
    # A cold answer includes the start of the interpreter.
    started = 0.0 if method == "cold" else time.process_time()
    held = METHODS[method](path)
    return {"seconds": time.process_time() - started, "peak": peak_bytes() - before, "held": held}


def peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--method", choices=METHODS, required=True)
    parser.add_argument("path", type=Path)
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.method, arguments.path)))
