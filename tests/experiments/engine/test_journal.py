import dataclasses
import json

import pytest

from bayescrowd.experiments.engine.experiment import CellId, Unit
from bayescrowd.experiments.engine.journal import UnitJournal

FIXED, DRAWN = Unit("fixed", 0), Unit("drawn", 3)
FIXED_VALUES = {CellId("fixed", "a"): 10.0, CellId("fixed", "b"): 0.1 + 0.2}
DRAWN_VALUES = {CellId("drawn", "a"): 12.5}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "toy.journal.jsonl"


@pytest.fixture
def written(path, toy):
    journal = UnitJournal(path, toy.experiment)
    journal.add(FIXED, FIXED_VALUES, 1.5)
    journal.add(DRAWN, DRAWN_VALUES, 2.5)
    return path


def units_in(path, experiment):
    journal = UnitJournal(path, experiment)
    return dict(journal.records)


def test_what_was_added_is_read_back_exactly(written, toy):
    records = units_in(written, toy.experiment)
    assert records[FIXED].values == FIXED_VALUES
    assert records[DRAWN].values == DRAWN_VALUES
    assert records[FIXED].seconds == 1.5


def test_a_unit_is_on_the_disk_when_add_returns(path, toy):
    journal = UnitJournal(path, toy.experiment)
    journal.add(FIXED, FIXED_VALUES, 1.5)
    assert json.loads(path.read_bytes().splitlines()[-1])["part"] == "fixed"


def test_every_torn_last_line_is_dropped_and_overwritten(written, toy):
    content = written.read_bytes()
    start = content.rindex(b"\n", 0, -1) + 1  # of the last line
    for length in range(start, len(content)):
        written.write_bytes(content[:length])
        journal = UnitJournal(written, toy.experiment)
        assert set(journal.records) == {FIXED}
        journal.add(DRAWN, DRAWN_VALUES, 2.5)
        assert written.read_bytes() == content


def test_first_of_two_records_of_a_unit_counts(written, toy):
    journal = UnitJournal(written, toy.experiment)
    journal.add(DRAWN, {CellId("drawn", "a"): 99.0}, 2.5)
    assert units_in(written, toy.experiment)[DRAWN].values == DRAWN_VALUES


@pytest.mark.parametrize("line", [b"{\n", b"[1]\n", b"{}\n", b"\x00\x00\n"])
def test_damage_elsewhere_is_an_error(written, toy, line):
    lines = written.read_bytes().splitlines(keepends=True)
    written.write_bytes(b"".join([lines[0], line, *lines[1:]]))
    with pytest.raises(ValueError, match="line 2: this is not a line of the journal"):
        UnitJournal(written, toy.experiment)


@pytest.mark.parametrize("content", [b"", b"no journal"])
def test_another_file_is_refused_and_left_alone(path, toy, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="this is not a journal"):
        UnitJournal(path, toy.experiment)
    assert path.read_bytes() == content


def test_other_settings_are_refused(written, toy):
    fixed, drawn = toy.experiment.parts
    changed = dataclasses.replace(
        toy.experiment, parts=(fixed, drawn._replace(settings="two draws"))
    )
    with pytest.raises(ValueError, match=r"drawn'\] 'one draw', and this run has 'two draws'"):
        UnitJournal(written, changed)


def test_another_version_is_refused(written, toy, monkeypatch):
    monkeypatch.setattr("bayescrowd.experiments.engine.journal.__version__", "9.9")
    with pytest.raises(ValueError, match=r"version '.+', and this run has '9\.9'"):
        UnitJournal(written, toy.experiment)


def test_another_experiment_is_refused(written, toy):
    with pytest.raises(ValueError, match="experiment 'toy', and this run has 'other'"):
        UnitJournal(written, dataclasses.replace(toy.experiment, name="other"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": [["fixed", "a", "word"]]}, "line 2: 'word' is not a number"),
        ({"values": [["fixed", "a", None]]}, "line 2: None is not a number"),
        ({"seconds": "long"}, "line 2: 'long' is not a number"),
        ({"part": ["fixed"]}, "line 2: this is not a line of the journal"),
    ],
)
def test_values_that_are_not_numbers_are_refused(written, toy, change, message):
    header, line, *rest = written.read_text().splitlines(keepends=True)
    changed = json.dumps({**json.loads(line), **change}) + "\n"
    written.write_text("".join([header, changed, *rest]))
    with pytest.raises(ValueError, match=message):
        UnitJournal(written, toy.experiment)


def test_deeply_nested_lines_and_odd_settings(written, toy):
    header, *rest = written.read_text().splitlines(keepends=True)
    written.write_text("".join([header, "[" * 100_000 + "\n", *rest]))
    with pytest.raises(ValueError, match="line 2: this is not a line of the journal"):
        UnitJournal(written, toy.experiment)
    changed = json.dumps({**json.loads(header), "settings": [1]}) + "\n"
    written.write_text("".join([changed, *rest]))
    with pytest.raises(ValueError, match=r"settings \[1\], and this run has"):
        UnitJournal(written, toy.experiment)
