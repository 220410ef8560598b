"""The facts about this machine that results depend on. On a Mac they come from the system's own tools."""

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

# Seconds after which a system tool counts as absent.
_TIMEOUT = 30.0

RunTool = Callable[[Sequence[str]], str]


def output_of(command: Sequence[str]) -> str:
    """What a system tool prints; "" if it is absent, fails or does not end."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def is_mac() -> bool:
    """Whether this system is macOS, on which an mps device is real."""
    return platform.system() == "Darwin"


def is_virtual(run_tool: RunTool = output_of) -> bool:
    """Whether this Mac is a virtual machine: its chip has the name of a real one, but its GPU is a different device."""
    return run_tool(["sysctl", "-n", "kern.hv_vmm_present"]) == "1"


def machine_facts(environment: Mapping[str, Any], private: PrivateNames, run_tool: RunTool = output_of) -> MachineFacts:
    """The facts of this machine and of the audit's recorded environment (`audit.running.environment`)."""
    variables = {
        name: message_of(value, private, LONGEST_MESSAGE)
        for name, value in sorted(os.environ.items())
        if name.startswith("PYTORCH_MPS_")
    }
    facts = _mac_facts(run_tool) if is_mac() else _other_facts()
    return MachineFacts(
        **facts,
        machine=platform.machine() or "unknown",
        torch=str(environment["torch"]),
        python=platform.python_version(),
        profile=public_version(str(environment["profile"])) if environment.get("profile") else None,
        variables=variables,
    )


def _mac_facts(run_tool: RunTool) -> dict[str, Any]:
    """Chip, cores, memory and release. The machine's name and its serial number are never read."""
    memory = run_tool(["sysctl", "-n", "hw.memsize"])
    return {
        "chip": run_tool(["sysctl", "-n", "machdep.cpu.brand_string"]) or "unknown",
        "gpu_cores": _gpu_cores(run_tool(["system_profiler", "-json", "SPDisplaysDataType"])),
        "system": "macOS",
        "release": run_tool(["sw_vers", "-productVersion"]) or platform.mac_ver()[0] or "unknown",
        "build": run_tool(["sw_vers", "-buildVersion"]) or None,
        "memory_gib": max(1, int(memory) // 2**30) if memory.isdecimal() else None,
        "virtual": is_virtual(run_tool),
    }


def _other_facts() -> dict[str, Any]:
    return {
        "chip": platform.processor() or platform.machine() or "unknown",
        "system": platform.system() or "unknown",
        "release": platform.release().partition("-")[0] or "unknown",
    }


def _gpu_cores(profile: str) -> int | None:
    """The largest number of GPU cores that system_profiler lists."""
    try:
        displays = json.loads(profile or "{}").get("SPDisplaysDataType", [])
        cores = [int(display["sppci_cores"]) for display in displays if str(display.get("sppci_cores", "")).isdecimal()]
    except (ValueError, AttributeError, TypeError):
        return None
    return max(cores, default=None)
