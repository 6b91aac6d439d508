"""A journal: a file of JSON lines that survives whatever ends the run that writes it.

The first line is a header that states the contents and the settings. Each further line is one JSON
object, which is on the disk when `append` returns. A last line without its line break was cut off
when the machine stopped and is dropped on reading; any other damage is an error. Results obtained
with different settings are never mixed: a journal whose header differs is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bayescrowd.io.writing import new_file

__all__ = ["LineJournal"]


class LineJournal:
    """A journal that is read once, when it is opened, and appended to from then on.

    Args:
        path: path of the file, which is created with the header if it does not exist.
        header: contents of the journal, version of the package and settings, as values that
            survive a round trip through JSON.

    Attributes:
        lines: the objects in the file when it was opened, without the header.

    Raises:
        ValueError: the file is not a journal, is damaged, or has a different header.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "runs.jsonl")
        >>> LineJournal(path, {"journal": "runs", "seed": 0}).append([{"run": 1}])
        >>> LineJournal(path, {"journal": "runs", "seed": 0}).lines
        [{'run': 1}]
    """

    lines: list[dict[str, Any]]

    def __init__(self, path: str | os.PathLike[str], header: Mapping[str, Any]) -> None:
        self.path = Path(path)
        if not self.path.exists():
            with new_file(self.path) as file:
                file.write(_encode(header))
        content = self.path.read_bytes()
        n_bytes = content.rfind(b"\n") + 1
        texts = content[:n_bytes].split(b"\n")[:-1]
        if not texts:
            raise ValueError(f"{self.path}: this is not a journal; expected a header line")
        found, *self.lines = [self._parse(text, number) for number, text in enumerate(texts, 1)]
        self._check_header(found, header)
        if n_bytes < len(content):
            os.truncate(self.path, n_bytes)  # otherwise, the next line would continue the torn one

    def append(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Append these objects; they are on the disk when this returns."""
        with open(self.path, "ab", opener=_open_existing) as file:
            file.write(b"".join(map(_encode, lines)))
            file.flush()
            os.fsync(file.fileno())

    def fault(self, place: int, reason: str = "this is not a line of the journal") -> ValueError:
        """The error to raise for `lines[place]`; it names the file and the number of the line."""
        return self._fault_in_line(place + 2, reason)  # line 1 is the header

    def _parse(self, text: bytes, number: int) -> dict[str, Any]:
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            line = None
        if not isinstance(line, dict):
            raise self._fault_in_line(number, "this is not a line of the journal")
        return line

    def _fault_in_line(self, number: int, reason: str) -> ValueError:
        return ValueError(f"{self.path}, line {number}: {reason}")

    def _check_header(self, found: Mapping[str, Any], header: Mapping[str, Any]) -> None:
        expected = json.loads(json.dumps(header))  # tuples become lists in the file
        for name in expected:
            old, new = found.get(name), expected[name]
            if old == new:
                continue
            if isinstance(old, dict) and isinstance(new, dict):
                inner = next(key for key in {**new, **old} if old.get(key) != new.get(key))
                name, old, new = f"{name}[{inner!r}]", old.get(inner), new.get(inner)
            raise ValueError(
                f"{self.path}: the journal has {name} {old!r}, and this run has {new!r}"
            )


def _encode(line: Mapping[str, Any]) -> bytes:
    return json.dumps(line, ensure_ascii=False).encode() + b"\n"


def _open_existing(path: str, flags: int) -> int:
    """Open without creating: a journal removed in the meantime would lack its header."""
    return os.open(path, flags & ~os.O_CREAT)
