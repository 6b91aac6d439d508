import re
from pathlib import Path

import pytest

import bayescrowd as bc
from bayescrowd.experiments import methods
from bayescrowd.experiments.engine.experiment import CellId
from bayescrowd.experiments.engine.journal import Record
from bayescrowd.experiments.engine.label_errors import CROWDS
from bayescrowd.experiments.engine.results import outcomes_of

README = Path(__file__).parents[2] / "README.md"
BLOCK = "above\n<!-- methods:begin -->\nold\n<!-- methods:end -->\nbelow\n"


def outcomes():
    """Made-up values: an error of 12.5 % and a quarter of a second everywhere."""
    records = {}
    for unit in methods.EXPERIMENT.units(1):
        method, crowd = unit.part.split(" on ")
        values = {CellId(method, crowd): 12.5, CellId(method, f"{crowd}, seconds"): 0.25}
        records[unit] = Record(values, 1.0)
    return outcomes_of(methods.EXPERIMENT, records, 1)


def rows_of(table):
    return [re.findall(r"[^|]+", line) for line in table.splitlines()[2:]]


def test_exported_methods_are_aggregators():
    names = methods.exported_methods()
    assert {"MajorityVote", "DawidSkene", "OneCoinDawidSkene", "Wawa"} <= set(names)
    assert not {"Annotations", "Dataset", "load_dataset"} & set(names)
    assert all(hasattr(getattr(bc, name), "fit_predict_proba") for name in names)


def test_table_has_a_row_per_method():
    rows = rows_of(methods.markdown(outcomes()))
    assert [row[0].strip(" `") for row in rows] == methods.exported_methods()
    assert [field.strip() for field in rows[0][1:]] == [*["12.50"] * len(CROWDS), "1.2"]


def test_table_goes_between_the_markers():
    assert methods.insert_table(BLOCK, "new") == BLOCK.replace("old", "new")


@pytest.mark.parametrize(
    "text", ["", methods.BEGIN, methods.END + methods.BEGIN, BLOCK + BLOCK, BLOCK + methods.END]
)
def test_a_file_without_the_two_markers_is_refused(text):
    with pytest.raises(ValueError, match="expected one line '<!-- methods:begin -->' and"):
        methods.insert_table(text, "new")


def test_command_rewrites_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(methods, "run_in_folder", lambda *arguments, **options: outcomes())
    path = tmp_path / "README.md"
    path.write_text(BLOCK)
    methods.main([str(path)])
    assert path.read_text() == methods.insert_table(BLOCK, methods.markdown(outcomes()))


def test_picture_has_a_panel_per_crowd():
    figure = methods.EXPERIMENT.draw(outcomes())
    assert [axes.get_title() for axes in figure.axes] == [crowd.name for crowd in CROWDS]


def test_a_method_is_measured_on_the_real_crowd(crowd):
    crowd("bluebird")
    values = methods.EXPERIMENT.measure("MajorityVote on bluebird", 0)
    assert values[CellId("MajorityVote", "bluebird")] == pytest.approx(100 * 26 / 108)
    assert values[CellId("MajorityVote", "bluebird, seconds")] > 0


def test_readme_names_every_method():
    """`python -m bayescrowd.experiments.methods README.md` brings it up to date."""
    text = README.read_text(encoding="utf-8")
    if methods.BEGIN not in text:
        pytest.skip("the README has no table of methods")
    table = text.partition(methods.BEGIN)[2].partition(methods.END)[0].strip()
    assert [row[0].strip(" `") for row in rows_of(table)] == methods.exported_methods()
