"""What pyproject.toml cannot say: a build starts from nothing, and this file is not in the package."""

import shutil

from setuptools import setup
from setuptools.command.build_py import build_py


class FreshBuild(build_py):
    """Ships the modules that are there now.

    Files that an earlier build left in build/lib, of modules that are gone since, would be shipped too.
    """

    def run(self) -> None:
        """Build into an emptied folder; an editable install builds none."""
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """The modules of a package as (package, module, path)."""
        modules = super().find_package_modules(package, package_dir)
        return [row for row in modules if row[:2] != ("mpsmith", "setup")]


setup(cmdclass={"build_py": FreshBuild})
