"""How much memory there is, and refusing what does not fit before it is tried."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["available_bytes", "check_fits", "in_words"]

_MEMINFO = Path("/proc/meminfo")
_CONTROL_GROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""The limit of a container, version 2 and version 1."""


def available_bytes() -> float:
    """Memory that this process can still claim; infinite where the system does not say.

    On Linux this is the memory that is free or can be freed, at most the container's limit;
    elsewhere it is all of the machine's memory.
    """
    known = [_memory_of_machine(), *(_limit_in(path) for path in _CONTROL_GROUP_LIMITS)]
    return min(known)


def check_fits(n_bytes: float, what: str, advice: str) -> None:
    """Refuse what takes more memory than there is.

    Args:
        n_bytes: how much it takes.
        what: what takes it.
        advice: what to do instead.

    Raises:
        ValueError: it does not fit.
    """
    available = available_bytes()
    if n_bytes > available:
        raise ValueError(
            f"{what}: {in_words(n_bytes)} of memory are needed and {in_words(available)} are "
            f"available; {advice}"
        )


def in_words(n_bytes: float) -> str:
    """A number of bytes with a unit.

    Examples:
        >>> in_words(2_500_000_000), in_words(7_300_000), in_words(12)
        ('2.5 GB', '7.3 MB', '12 bytes')
    """
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:,.1f} {unit}"
    return f"{n_bytes:.0f} bytes"


def _memory_of_machine() -> float:
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
