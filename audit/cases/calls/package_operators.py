"""Calls of operators that packages define: searched when a package is first audited, then kept in the user's cache.

The search runs in a separate program, because it starts worker processes and those of an audit may not.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock

from ....cache import cache_folder
from .recorded_calls import RecordedCalls

# Namespaces of torch itself, some of which are filled only when a package imports the module that does it.
OWN_NAMESPACES = re.compile(
    r"_?(aten|c10d\w*|debug_mode_ops|debugprims|dist_tensor|dtensor|export|fsdp|higher_order|inductor\w*|mkl\w*|native"
    r"|onednn|onnx\w*|prims?|profiler|quantization|quantized\w*|rngprims|simmps|sparse|static_runtime|streams"
    r"|symm_mem|test|triton|xnnpack)"
)


def registered_operators() -> frozenset[str]:
    """Every overload outside torch's own namespaces that the dispatcher knows at this moment ("mylib::foo.Scalar")."""
    import torch

    names = torch._C._dispatch_get_all_op_names()
    return frozenset(name for name in names if not OWN_NAMESPACES.fullmatch(name.partition("::")[0]))


def package_calls(overloads: Sequence[str], packages: Sequence[str]) -> RecordedCalls:
    """Calls of these overloads, which importing `packages` defines: from the cache, or searched now.

    An overload without accepted calls is recorded too, with the errors.
    """
    from importlib.metadata import version

    from .invocation import fingerprint

    release = version("torch")
    folder = cache_folder() / "calls" / release
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        memory = RecordedCalls.load(folder).fitting(fingerprint)
        missing = [name for name in overloads if name not in memory.overloads]
        if missing:
            _search_in_subprocess(missing, packages, folder)
            memory = RecordedCalls.load(folder).fitting(fingerprint)
    return RecordedCalls(release, {n: r for n, r in memory.overloads.items() if n in overloads})


def _search_in_subprocess(overloads: Sequence[str], packages: Sequence[str], folder: Path) -> None:
    request = json.dumps({"overloads": list(overloads), "packages": list(packages), "folder": str(folder)})
    paths = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    subprocess.run(
        [sys.executable, "-m", "mpsmith.audit.cases.argument_search.package_operators"],
        input=request,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.DEVNULL,
    )
