"""A folder of wheels for pip, in which several releases of torch are the one that is installed here.

pip, the environment and the audit are real; the wheels are empty but for their names and a path to the packages of
this environment.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

POSING = Path(__file__).parent / "posing_as_a_release" / "posing_as_a_release.py"


def write_wheels(folder: Path, releases: Iterable[str], others: Iterable[tuple[str, str]]) -> None:
    """Wheels of these releases of torch, and of other packages by name and version."""
    folder.mkdir()
    for release in releases:
        packages = [path for path in sys.path if Path(path).name == "site-packages"]
        lines = [*packages, f"import {POSING.stem}"]
        _write_wheel(folder, "torch", release, {POSING.name: POSING.read_text(), "torch.pth": "\n".join(lines)})
    for name, version in others:
        _write_wheel(folder, name, version, {})


def _write_wheel(folder: Path, name: str, version: str, files: Mapping[str, str]) -> None:
    stem = f"{name.replace('-', '_')}-{version}"
    about = f"{stem}.dist-info"
    contents = {
        **files,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    contents[f"{about}/RECORD"] = "".join(f"{file},,\n" for file in (*contents, f"{about}/RECORD"))
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
        for file, text in contents.items():
            wheel.writestr(file, text)
