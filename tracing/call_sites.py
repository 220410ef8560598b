"""Maps a Python stack to the line of the user's source and the path of the module, such as `model.3`.

It only reads frames and installs no hooks, so the program's modules run as usual.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch

from .recording import CallSite

_TORCH, _LIBRARY, _USER, _PYTHON = range(1, 5)

_OWN_FOLDERS = tuple(str(Path(__file__).parents[1] / room) + os.sep for room in ("tracing", "kernels", "simulator"))
_TORCH_FOLDER = str(Path(torch.__file__).parent) + os.sep
_STANDARD_LIBRARY = sysconfig.get_path("stdlib") + os.sep
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")

_CALL_OF_A_MODULE: CodeType = torch.nn.Module._call_impl.__code__
_PRINTING = str(Path(torch.__file__).parent / "_tensor_str.py")
# Starts a backward: frames above it belong to the caller of backward, not to the node that runs.
_ENGINE: CodeType | None = getattr(getattr(torch.autograd.graph, "_engine_run_backward", None), "__code__", None)

UNKNOWN, OVERFLOW_SITE = range(2)
# Code that is compiled repeatedly, as by exec, gives ever new sites: those after the limit share one entry.
MAX_SITES = 1 << 15


class CallSites:
    """The call sites seen so far, each with a number; UNKNOWN means none, OVERFLOW_SITE all after the limit."""

    def __init__(self, limit: int = MAX_SITES) -> None:
        self._most = limit
        self.sites: list[CallSite] = [CallSite(), CallSite(note="one of too many call sites")]
        self._numbers: dict[tuple[int, int, int, int, str, bool], int] = {}
        self._files: dict[str, int] = {}
        self._codes: dict[int, CodeType] = {}  # keeps code objects alive, because keys hold their ids
        self._paths: dict[int, tuple[weakref.ref[Any], str]] = {}

    def find(self, frame: FrameType | None) -> int:
        """The number of the call site of a stack, given its innermost frame; UNKNOWN inside a backward."""
        files = self._files
        start, library, user, module, printing = frame, None, None, None, False
        while frame is not None:
            code = frame.f_code
            file = code.co_filename
            owner = files.get(file) or self._owner(file)
            if owner == _TORCH:
                if module is None and code is _CALL_OF_A_MODULE:
                    module = frame.f_locals["self"]
                    if user is not None:
                        break
                elif code is _ENGINE:
                    break
                elif file == _PRINTING:
                    printing = True
            elif user is None:
                if owner == _USER:
                    user = frame
                    if module is not None:
                        break
                elif owner == _LIBRARY and library is None:
                    library = frame
            frame = frame.f_back
        if user is None and library is None:
            return UNKNOWN
        path = self._path(module, start) if module is not None else ""
        key = (
            id(library.f_code) if library else 0,
            library.f_lasti if library else 0,
            id(user.f_code) if user else 0,
            user.f_lasti if user else 0,
            path,
            printing,
        )
        number = self._numbers.get(key)
        if number is None:
            if len(self.sites) >= self._most:
                return OVERFLOW_SITE
            number = self._numbers[key] = self._new(library, user, path, printing)
        return number

    def _new(self, library: FrameType | None, user: FrameType | None, path: str, printing: bool) -> int:
        for frame in (library, user):
            if frame is not None:
                self._codes[id(frame.f_code)] = frame.f_code
        here = user or library
        site = CallSite(
            file=_file_of(here.f_code.co_filename) if here else "",
            line=here.f_lineno if here else 0,
            module=path,
            library=f"{library.f_code.co_filename}:{library.f_lineno}" if user and library else "",
            note="printing" if printing else "",
        )
        self.sites.append(site)
        return len(self.sites) - 1

    def _owner(self, file: str) -> int:
        if file.startswith(_TORCH_FOLDER):
            owner = _TORCH
        elif file.startswith(_OWN_FOLDERS) or (file.startswith("<frozen") and file.endswith(">")):
            owner = _PYTHON
        elif any(part in file for part in _PACKAGES):
            owner = _LIBRARY
        elif file.startswith(_STANDARD_LIBRARY):
            owner = _PYTHON
        else:
            owner = _USER
        if len(self._files) >= self._most:
            self._files.clear()
        self._files[file] = owner
        return owner

    def _path(self, module: Any, start: FrameType | None) -> str:
        """The module's path from the outermost module of the stack that contains it: `model.layers.0`."""
        cached = self._paths.get(id(module))
        if cached and cached[0]() is module:
            return cached[1]
        for root, caller in reversed(list(_calls_of_modules(start))):
            names = {id(part): name for name, part in root.named_modules()}
            if id(module) in names:
                first, rest = _name_of(root, caller), names[id(module)]
                path = f"{first}.{rest}" if rest else first
                if len(self._paths) >= self._most:
                    self._paths.clear()
                self._paths[id(module)] = (weakref.ref(module), path)
                return path
        return type(module).__name__


def _file_of(file: str) -> str:
    """The name of a source file; of a notebook's cell, which ipykernel puts into a file of its folder, `In[3]`."""
    interactive = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive else None
    named = shell.compile.format_code_name(file) if shell else None
    return named[1] if named else file


def _calls_of_modules(frame: FrameType | None) -> Iterator[tuple[Any, FrameType | None]]:
    """The modules that are being called, the innermost first, each with its calling frame."""
    while frame is not None:
        if frame.f_code is _CALL_OF_A_MODULE:
            module = frame.f_locals["self"]
            caller = frame.f_back
            while caller is not None and caller.f_code.co_filename.startswith(_TORCH_FOLDER):
                caller = caller.f_back
            yield module, caller
        frame = frame.f_back


def _name_of(root: Any, caller: FrameType | None) -> str:
    """The name of a module in the calling code: its place in a module there, a variable, an attribute, or its class.

    A loop variable names every layer: in `for layer in net`, the second one is `net.1`.
    """
    if caller is not None:
        for variables in (caller.f_locals, caller.f_globals):
            for name, value in list(variables.items()):
                if isinstance(value, torch.nn.Module) and value is not root:
                    path = next((path for path, part in value.named_modules() if part is root), "")
                    if path:
                        return f"{name}.{path}"
        for variables in (caller.f_locals, caller.f_globals):
            for name, value in list(variables.items()):
                if value is root:
                    return name
        for name, value in list(caller.f_locals.items()):
            for attribute, held in list(getattr(value, "__dict__", {}).items()):
                if held is root:
                    return f"{name}.{attribute}"
    return type(root).__name__
