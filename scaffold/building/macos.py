"""Builds on a Mac, with torch's own extension builder and Apple's compiler. The simulator is not involved."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..errors import ScaffoldError
from .subject import ARC, FRAMEWORKS, NO_ARC, SETUP, BuildSubject

_SCRIPT = """\
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    ext_modules=[CppExtension({name!r}, {sources!r}, extra_compile_args={compile!r}, extra_link_args={link!r})],
    cmdclass={{"build_ext": BuildExtension}},
)
"""


def build(subject: BuildSubject) -> list[Path]:
    """Build the modules and return their paths. The toolchain's messages go to the terminal.

    Raises:
        ScaffoldError: the toolchain failed, or left no module.
    """
    if not subject.is_file:
        return _run(subject.path / SETUP, ["build_ext", "--inplace"], subject.path, subject)
    with tempfile.TemporaryDirectory(prefix="mpsmith-build-") as temporary:
        script = Path(temporary) / SETUP
        script.write_text(
            _SCRIPT.format(
                name=subject.name,
                sources=[str(subject.path)],
                compile=[ARC] * subject.arc + [flag for flag in subject.flags if flag not in (ARC, NO_ARC)],
                link=list(FRAMEWORKS),
            )
        )
        words = ["build_ext", "--build-lib", str(subject.out), "--build-temp", str(Path(temporary) / "objects")]
        return _run(script, words, subject.out, subject)


def _run(script: Path, words: Sequence[str], folder: Path, subject: BuildSubject) -> list[Path]:
    before = _modules(folder)
    done = subprocess.run([sys.executable, str(script), *words], cwd=script.parent, stdout=sys.stderr, check=False)
    if done.returncode:
        raise ScaffoldError(f"{subject.path} was not built: see the toolchain's messages above")
    built = [path for path, changed in _modules(folder).items() if before.get(path) != changed]
    if not built and not before:
        raise ScaffoldError(f"{subject.path}: the toolchain built no module; does the source define one?")
    return sorted(built or before)  # unchanged ones stay as they were


def _modules(folder: Path) -> dict[Path, int]:
    """The loadable modules below a folder, with the time of their last change."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.so") if "build" not in path.parts}
