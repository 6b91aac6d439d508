"""Available memory, and refusal of computations that would need more."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["available_bytes", "check_fits", "in_words"]

_MEMINFO = Path("/proc/meminfo")
_CONTROL_GROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Files with a container's memory limit, in version 2 and version 1 of control groups."""


def available_bytes() -> float:
    """Bytes of memory that this process can still claim; infinity if the system does not say.

    On Linux this is the memory that is free or can be freed, capped at the container's limit;
    elsewhere it is the machine's total memory.
    """
    return min(_machine_bytes(), *map(_limit_in, _CONTROL_GROUP_LIMITS))


def check_fits(n_bytes: float, what: str, advice: str) -> None:
    """Refuse a computation that needs more memory than is available.

    Args:
        n_bytes: bytes that the computation needs.
        what: name of the computation, with which the message begins.
        advice: what the user can do instead.

    Raises:
        ValueError: the computation does not fit into memory.
    """
    available = available_bytes()
    if n_bytes > available:
        raise ValueError(
            f"{what}: {in_words(n_bytes)} of memory are needed, but only {in_words(available)} are "
            f"available; {advice}"
        )


def in_words(n_bytes: float) -> str:
    """A number of bytes in a readable unit.

    Examples:
        >>> in_words(2_500_000_000), in_words(7_300_000), in_words(12)
        ('2.5 GB', '7.3 MB', '12 bytes')
    """
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:,.1f} {unit}"
    return f"{n_bytes:.0f} bytes"


def _machine_bytes() -> float:
    try:
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    except OSError:
        pass  # not Linux
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return float("inf")


def _limit_in(path: Path) -> float:
    try:
        text = path.read_text().strip()
    except OSError:
        return float("inf")
    return float(text) if text.isdigit() else float("inf")
