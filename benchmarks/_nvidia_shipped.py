"""Kernels that a release of torch ships to Macs, repeated on an NVIDIA GPU and compared with the host's run.

python -m benchmarks._nvidia_shipped record RELEASE FILE [SECONDS]   needs no GPU: runs samples of many operators
python -m benchmarks._nvidia_shipped replay FILE [JSON]              on a machine with the GPU

A recording says whether the call that it comes from gave what torch's CPU gives.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

_LIMIT_BYTES = 1 << 18
_SAMPLES = 6
_SHARE = 40
# Of results that are floats: beyond this many units in the last place, and this much of the largest value, it is wrong.
_ULPS = 64
_OF_LARGEST = 1e-5
_FLOATS = {"float": "float32", "half": "float16", "bfloat": "bfloat16"}

# A launch, its PTX, and whether the call's result was the CPU's.
Recording = tuple[Any, Any, bool]


def main() -> None:
    command, *rest = sys.argv[1:]
    if command == "record":
        record(rest[0], Path(rest[1]), float(rest[2]) if len(rest) > 2 else 600.0)
    else:
        replay_all(Path(rest[0]), Path(rest[1]) if len(rest) > 1 else None)


def record(release: str, target: Path, seconds: float) -> None:
    """Run operators through the shipped kernels on the host; keep a launch of each kernel and its PTX."""
    processes = os.cpu_count() or 1
    by_kernel: dict[str, Recording] = {}
    refused: dict[str, str] = {}
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        shares = [pool.submit(_recorded_share, release, number, processes, seconds) for number in range(processes)]
        for share in shares:
            found, refusals = share.result()
            refused |= refusals
            for each in found:
                name = each[0].kernel
                if name not in by_kernel or (each[2] and not by_kernel[name][2]):
                    by_kernel[name] = each
    kept = list(by_kernel.values())
    target.write_bytes(pickle.dumps({"release": release, "recordings": kept, "refused": refused}))
    agree = sum(same for _, _, same in kept)
    print(
        f"{len(kept)} kernels recorded, {agree} of them in calls that gave what the CPU gives, {len(refused)} refused, "
        f"{target.stat().st_size:,} bytes"
    )


def _recorded_share(release: str, number: int, of: int, seconds: float) -> tuple[list[Recording], dict[str, str]]:
    os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = "1"
    os.environ["MPSMITH_KERNELS"] = "off"
    import torch

    from mpsmith.audit.releases.surface.profiles import coverage_profile
    from mpsmith.audit.releases.wheel.shipped import shipped_library
    from mpsmith.audit.shipped.case_launches import put_under_device
    from mpsmith.errors import MpsmithError
    from mpsmith.simulator.air.library import AirKernel
    from mpsmith.simulator.clang import installed
    from mpsmith.simulator.nvidia.air_compiler import AirPtxCompiler
    from mpsmith.simulator.nvidia.compiler import PtxCompiler
    from mpsmith.simulator.nvidia.program import default_cache
    from mpsmith.simulator.nvidia.recording import RecordedLaunch, recorded
    from mpsmith.simulator.opening import DeviceKind, open_device

    torch.set_num_threads(1)
    open_device(DeviceKind.SIMULATED, coverage_profile, release)
    compiler = AirPtxCompiler(PtxCompiler(installed()), default_cache())
    kept: list[Recording] = []
    of_call: list[tuple[RecordedLaunch, Any]] = []
    refused: dict[str, str] = {}
    agreeing: set[str] = set()

    def keep(recording: RecordedLaunch, kernel: AirKernel) -> None:
        if any(recording.kernel == earlier.kernel for earlier, _ in of_call):
            return
        try:
            of_call.append((recording, compiler.code(kernel._bitcode, recording.kernel)))
        except MpsmithError as error:
            refused[recording.kernel] = str(error)

    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        put_under_device(shipped_library(release), release, Path(scratch))
        with recorded(keep, lambda name: name not in agreeing and name not in refused, _LIMIT_BYTES):
            for operator, sample in _samples(number, of):
                same = _gives_what_the_cpu_gives(operator, sample)
                kept += [(recording, code, same) for recording, code in of_call]
                agreeing.update(recording.kernel for recording, _ in of_call if same)
                of_call.clear()
                if time.monotonic() - begin > seconds:
                    break
    return kept, refused


def _samples(number: int, of: int) -> Iterator[tuple[Any, Any]]:
    """One share of OpInfo's samples, a dtype after the other, so that a cut run still has every operator."""
    import random

    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    dtypes = [torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.bool, torch.complex64]
    dtypes += [torch.uint8, torch.int16, torch.int8]
    operators = list(op_db)
    random.Random(7).shuffle(operators)
    for dtype in dtypes:
        for operator in operators[number::of]:
            if dtype not in operator.supported_dtypes("cpu"):
                continue
            try:
                samples = list(zip(range(_SAMPLES), operator.sample_inputs("cpu", dtype), strict=False))
            except Exception:  # a sample function that needs what is not here
                continue
            for _, sample in samples:
                yield operator, sample


def _gives_what_the_cpu_gives(operator: Any, sample: Any) -> bool:
    """Call an operator on mps and on the CPU; a call that either refuses gives nothing to compare."""
    import torch

    def moved(value: Any) -> Any:
        return value.to("mps") if isinstance(value, torch.Tensor) and value.dtype is not torch.float64 else value

    try:
        there = sample.transform(moved)
        found = operator(there.input, *there.args, **there.kwargs)
        expected = operator(sample.input, *sample.args, **sample.kwargs)
        torch.testing.assert_close(found, expected, check_device=False, equal_nan=True, rtol=1e-2, atol=1e-3)
    except Exception:  # what the call does on mps is the audit's business
        return False
    return True


def replay_all(source: Path, report: Path | None) -> None:
    """Repeat every recording on the GPU and count what comes out right."""
    from mpsmith.simulator.nvidia import default_driver

    content = pickle.loads(source.read_bytes())
    recordings = content["recordings"]
    shares = [recordings[i : i + _SHARE] for i in range(0, len(recordings), _SHARE)]
    # A kernel that the GPU does not forgive takes its process with it: the rest of its share, and no more.
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        outcomes = [row for rows in pool.map(_replayed, shares) for row in rows]
    counts = Counter(outcome for _, outcome, _ in outcomes)
    agree = sum(same for _, _, same in recordings)
    counts["not translated"] = len(content["refused"])
    gpu = default_driver().name
    print(f"torch {content['release']} on {gpu} (NVIDIA, not Apple): {dict(counts)}")
    print(f"{agree} of {len(recordings)} are of calls whose result on the host was that of torch's CPU")
    for name, outcome, detail in sorted(outcomes):
        if outcome in ("wrong", "failed"):
            print(f"  {name}: {outcome}, {detail}")
    if report is not None:
        told = {
            "release": content["release"],
            "gpu": gpu,
            "counts": counts,
            "as_the_cpu": agree,
            "refused": content["refused"],
        }
        report.write_text(json.dumps({**told, "kernels": sorted(outcomes)}, indent=1))


def _replayed(share: list[Any]) -> list[tuple[str, str, str]]:
    from mpsmith.simulator.nvidia import NvidiaError, default_driver
    from mpsmith.simulator.nvidia.recording import replay

    rows = []
    for recording, code, _ in share:
        try:
            results = replay(default_driver(), code, recording)
        except NvidiaError as error:
            rows.append((recording.kernel, "failed", str(error)[:200]))
            continue
        rows.append((recording.kernel, *_compared(recording, results)))
    return rows


def _compared(recording: Any, results: list[bytes]) -> tuple[str, str]:
    """The outcome, and by how much the worst element differs."""
    worst = ("the same bits", "")
    for region, found in zip(recording.regions, results, strict=True):
        if region.after is None or region.after == found:
            continue
        outcome, detail = _difference(_element(region.type_name, recording.kernel), region.after, found)
        if outcome == "wrong":
            return outcome, detail
        worst = (outcome, detail)
    return worst


def _element(type_name: str, kernel: str) -> str:
    """The type of a region's elements; where AIR names none (void, decltype) the first that the kernel's name has."""
    if type_name != "void" and "(" not in type_name:
        return type_name
    return next((word for word in kernel.split("_") if word.rstrip("234") in _FLOATS), type_name)


def _difference(type_name: str, expected: bytes, found: bytes) -> tuple[str, str]:
    import torch

    scalar = type_name.rstrip("234")
    if scalar not in _FLOATS or len(expected) % (2 if scalar != "float" else 4):
        different = sum(a != b for a, b in zip(expected, found, strict=True))
        return "wrong", f"{different} of {len(expected)} bytes of {type_name}"
    dtype = getattr(torch, _FLOATS[scalar])
    a, b = (torch.frombuffer(bytearray(data), dtype=dtype).double() for data in (expected, found))
    same = (a == b) | (a.isnan() & b.isnan())
    both = a.isfinite() & b.isfinite()
    off = ~same
    if not bool(off.any()):
        return "within rounding", "signs of zeros, or the bits of NaN"
    limits = torch.finfo(dtype)
    unit = torch.exp2(a.abs().clamp(min=limits.smallest_normal).log2().floor()) * limits.eps
    ulps = torch.where(both, (a - b).abs() / unit, torch.inf)[off]
    largest = a[both].abs().max().item() if bool(both.any()) else 0.0
    absolute = torch.where(both, (a - b).abs(), torch.inf)[off]
    bad = (ulps > _ULPS) & (absolute > max(_OF_LARGEST, limits.eps * 4) * largest)
    detail = f"{int(off.sum())} of {a.numel()} differ, at most {ulps.max().item():.0f} ulp, {absolute.max().item():.2g}"
    return ("wrong" if bool(bad.any()) else "within rounding"), detail


if __name__ == "__main__":
    main()
