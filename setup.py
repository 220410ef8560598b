"""Build steps that pyproject.toml cannot express: builds start from an empty folder and leave this file out."""

import shutil

from setuptools import setup
from setuptools.command.build_py import build_py


class FreshBuild(build_py):
    """Builds from an empty folder.

    Otherwise files in build/lib from an earlier build would be shipped, although their modules no longer exist.
    """

    def run(self) -> None:
        """Empty the build folder, then build; an editable install has none."""
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """The modules of a package as (package, module, path)."""
        modules = super().find_package_modules(package, package_dir)
        return [row for row in modules if row[:2] != ("mpsmith", "setup")]


setup(cmdclass={"build_py": FreshBuild})
