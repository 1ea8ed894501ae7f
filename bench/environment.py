"""What figures were measured on: facts about the machine, Python and the packages that matter."""

import os
import platform
import time
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("trioloop", "trio", "msgspec", "attrs")


def environment() -> dict[str, str | int | float]:
    """The facts, by name."""
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "machine": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "load": round(os.getloadavg()[0], 1),
        **{package: version(package) for package in PACKAGES},
    }


def _processor() -> str:
    """Its model's name, where the system tells it."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text(encoding="utf-8").splitlines() if known.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
