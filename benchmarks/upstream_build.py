"""PyTorch's own host code for mps, built for this machine: the files of a checkout that need Metal alone.

Time on the clock and processor time, with nothing kept from before: headers are precompiled on the way. MPSMITH_PYTORCH
names the checkout. Needs `mpsmith check --setup`.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from unittest import mock

from mpsmith.simulator.errors import ExtensionError
from mpsmith.simulator.objc import compiler
from mpsmith.simulator.objc.host_libraries import torch_host_library
from mpsmith.simulator.upstream import building
from mpsmith.simulator.upstream.operations import NATIVE_FUNCTIONS, TAGS, operation_files
from mpsmith.simulator.upstream.registrations import MpsYaml

from ._processor_time import processor_seconds

_ALL = 100  # of upstream's files, about


def main() -> None:
    """Print how long the files take together, and what a hundred would."""
    checkout = os.environ.get("MPSMITH_PYTORCH")
    if not checkout:
        print("skipped: set MPSMITH_PYTORCH to a checkout of PyTorch")
        return
    try:
        torch_host_library()
    except ExtensionError as error:
        print(f"skipped: {error}")
        return
    root = Path(checkout)
    yaml = MpsYaml((root / NATIVE_FUNCTIONS).read_text("utf-8"), root / TAGS)
    files = [file for file in operation_files(root) if not file.refused]
    built: list[building.BuiltFile] = []
    with (
        tempfile.TemporaryDirectory() as temporary,
        mock.patch.object(building, "cache_folder", return_value=Path(temporary)),
        mock.patch.object(compiler, "cache_folder", return_value=Path(temporary)),
    ):
        start = time.perf_counter()
        used = processor_seconds(lambda: built.extend(building.build_files(files, yaml)))
        took = time.perf_counter() - start
    done = sum(one.built for one in built)
    print(
        f"{done} of {len(files)} files built in {took:.0f} s on {os.cpu_count()} cores, {used:.0f} s of processor time"
    )
    print(f"{_ALL} such files: {took * _ALL / len(files) / 60:.1f} min")


if __name__ == "__main__":
    main()
