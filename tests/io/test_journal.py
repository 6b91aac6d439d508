import json
import os

import pytest

from bayescrowd.io.journal import LineJournal

HEADER = {"journal": "runs", "version": "1", "sizes": (1, 2), "policies": {"a": "A", "b": "B"}}
LINES = [{"run": 1, "name": "größer"}, {"run": 2, "error": 0.1 + 0.2}]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.jsonl"


@pytest.fixture
def written(path):
    LineJournal(path, HEADER).append(LINES)
    return path


def test_what_was_appended_is_read_back_exactly(written):
    assert LineJournal(written, HEADER).lines == LINES


def test_the_file_is_the_header_and_a_line_for_each_object(written):
    header, *lines = written.read_text(encoding="utf-8").splitlines()
    assert json.loads(header) == json.loads(json.dumps(HEADER))
    assert [json.loads(line) for line in lines] == LINES
    assert "größer" in lines[0]


def test_several_handles_append_in_turn(path):
    one, other = LineJournal(path, HEADER), LineJournal(path, HEADER)
    one.append(LINES[:1])
    other.append(LINES[1:])
    assert LineJournal(path, HEADER).lines == LINES


def test_lines_are_flushed_to_the_disk(path, monkeypatch):
    flushed = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    journal = LineJournal(path, HEADER)
    n_before = len(flushed)
    journal.append(LINES)
    assert len(flushed) == n_before + 1


def test_every_torn_last_line_is_dropped_and_overwritten(written):
    content = written.read_bytes()
    start = content.rindex(b"\n", 0, -1) + 1  # of the last line
    for length in range(start, len(content)):
        written.write_bytes(content[:length])
        journal = LineJournal(written, HEADER)
        assert journal.lines == LINES[:1]
        journal.append(LINES[1:])
        assert written.read_bytes() == content


@pytest.mark.parametrize(
    "line", [b"{\n", b"[1]\n", b"null\n", b"\n", b"\x00\x00\n", b"[" * 100_000 + b"\n"]
)
def test_damage_elsewhere_is_an_error_and_changes_nothing(written, line):
    header, *lines = written.read_bytes().splitlines(keepends=True)
    content = b"".join([header, line, *lines])
    written.write_bytes(content)
    with pytest.raises(ValueError, match=r"runs\.jsonl, line 2: this is not a line of the journal"):
        LineJournal(written, HEADER)
    assert written.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"no journal"])
def test_another_file_is_refused_and_not_changed(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="this is not a journal; expected a header line"):
        LineJournal(path, HEADER)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": "2"}, "the journal has version '1', and this run has '2'"),
        ({"sizes": (1,)}, r"the journal has sizes \[1, 2\], and this run has \[1\]"),
        ({"policies": {"a": "A", "b": "C"}}, r"policies\['b'\] 'B', and this run has 'C'"),
        ({"policies": {"a": "A"}}, r"policies\['b'\] 'B', and this run has None"),
        ({"seed": 3}, "the journal has seed None, and this run has 3"),
    ],
)
def test_other_settings_are_refused(written, change, message):
    before = written.read_bytes()
    with pytest.raises(ValueError, match=message):
        LineJournal(written, {**HEADER, **change})
    assert written.read_bytes() == before


def test_a_removed_journal_is_not_recreated_without_its_header(written):
    journal = LineJournal(written, HEADER)
    written.unlink()
    with pytest.raises(FileNotFoundError):
        journal.append(LINES)
    assert not written.exists()


def test_a_fault_names_file_and_line(written):
    journal = LineJournal(written, HEADER)
    assert str(journal.fault(0, "run is 'x'; expected a number")) == (
        f"{written}, line 2: run is 'x'; expected a number"
    )
