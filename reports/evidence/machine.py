"""What a machine says of itself, as far as results depend on it. On a Mac the system's own tools are asked."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...registry.torch_release import public_version
from .privacy import PrivateNames, message_of
from .schema import LONGEST_MESSAGE, MachineFacts

# A system tool that does not answer in this time is taken for one that is not there.
_PATIENCE = 30.0
_GIB = 2**30

Ask = Callable[[Sequence[str]], str]


def answer(command: Sequence[str]) -> str:
    """What a system tool prints; "" where it is absent, fails or does not end."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def machine_facts(environment: Mapping[str, Any], identity: PrivateNames, ask: Ask = answer) -> MachineFacts:
    """The facts of this machine, beside what an audit recorded of its environment (`audit.running.environment`)."""
    variables = {
        name: message_of(value, identity, LONGEST_MESSAGE)
        for name, value in sorted(os.environ.items())
        if name.startswith("PYTORCH_MPS_")
    }
    facts = _of_mac(ask) if platform.system() == "Darwin" else _of_other()
    return MachineFacts(
        **facts,
        machine=platform.machine() or "unknown",
        torch=str(environment["torch"]),
        python=platform.python_version(),
        profile=public_version(str(environment["profile"])) if environment.get("profile") else None,
        variables=variables,
    )


def _of_mac(ask: Ask) -> dict[str, Any]:
    """Chip, cores, memory and release; neither the machine's name nor its serial number is asked for."""
    memory = ask(["sysctl", "-n", "hw.memsize"])
    return {
        "chip": ask(["sysctl", "-n", "machdep.cpu.brand_string"]) or "unknown",
        "gpu_cores": _gpu_cores(ask(["system_profiler", "-json", "SPDisplaysDataType"])),
        "system": "macOS",
        "release": ask(["sw_vers", "-productVersion"]) or platform.mac_ver()[0] or "unknown",
        "build": ask(["sw_vers", "-buildVersion"]) or None,
        "memory_gib": max(1, int(memory) // _GIB) if memory.isdecimal() else None,
    }


def _of_other() -> dict[str, Any]:
    return {
        "chip": platform.processor() or platform.machine() or "unknown",
        "system": platform.system() or "unknown",
        "release": platform.release().partition("-")[0] or "unknown",
    }


def _gpu_cores(profile: str) -> int | None:
    """The cores of the GPU that system_profiler lists; of several, of the one with the most."""
    try:
        listed = json.loads(profile or "{}").get("SPDisplaysDataType", [])
        cores = [int(each["sppci_cores"]) for each in listed if str(each.get("sppci_cores", "")).isdecimal()]
    except (ValueError, AttributeError, TypeError):
        return None
    return max(cores, default=None)
