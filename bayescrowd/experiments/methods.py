"""Label error and seconds of every exported aggregator, with its defaults, on five public crowds.

`python -m bayescrowd.experiments.methods README.md` measures them and writes the table between the
two markers of that file.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from matplotlib.figure import Figure

import bayescrowd  # the public names themselves are the subject here
from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.experiments.engine.command import run_in_folder
from bayescrowd.experiments.engine.experiment import Cell, CellId, Experiment, Part, settings_of
from bayescrowd.experiments.engine.label_errors import CROWDS, label_error, loaded_crowd
from bayescrowd.experiments.engine.outcome import Outcome
from bayescrowd.io.writing import new_file

__all__ = ["BEGIN", "END", "EXPERIMENT", "exported_methods", "insert_table", "main", "markdown"]

BEGIN, END = "<!-- methods:begin -->", "<!-- methods:end -->"
"""The lines between which the table is written."""


def exported_methods() -> list[str]:
    """Names of the aggregators that the package exports, in alphabetical order."""
    exported = {name: getattr(bayescrowd, name) for name in bayescrowd.__all__}
    return sorted(
        name
        for name, value in exported.items()
        if isinstance(value, type) and issubclass(value, Aggregator)
    )


def markdown(outcomes: Sequence[Outcome]) -> str:
    """The table in Markdown: errors in per cent, and total seconds for the five crowds."""
    measured = {outcome.cell.id: outcome.measured for outcome in outcomes}
    lines = [
        f"| Error in % | {' | '.join(crowd.name for crowd in CROWDS)} | seconds, all five |",
        f"|---|{'--:|' * (len(CROWDS) + 1)}",
    ]
    for method in dict.fromkeys(id_.row for id_ in measured):
        errors = [f"{measured[CellId(method, crowd.name)]:.2f}" for crowd in CROWDS]
        seconds = sum(measured[CellId(method, _seconds(crowd.name))] for crowd in CROWDS)
        lines.append(f"| `{method}` | {' | '.join(errors)} | {seconds:.2g} |")
    return "\n".join(lines)


def insert_table(text: str, table: str) -> str:
    r"""Replace what stands between the two markers of a text by the table.

    Raises:
        ValueError: the text does not have both markers, each once and in order.

    Examples:
        >>> print(insert_table("above\n<!-- methods:begin -->\nold\n<!-- methods:end -->", "new"))
        above
        <!-- methods:begin -->
        new
        <!-- methods:end -->
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end) or text.count(BEGIN) > 1 or text.count(END) > 1:
        raise ValueError(f"expected one line {BEGIN!r} and, below it, one line {END!r}")
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def main(argv: Sequence[str] | None = None) -> None:
    """Measure from scratch in this process, and write the table into a file."""
    parser = argparse.ArgumentParser(prog="python -m bayescrowd.experiments.methods")
    parser.add_argument("file", type=Path, help="file with the markers")
    path = parser.parse_args(argv).file
    text = path.read_text(encoding="utf-8")
    insert_table(text, "")  # a file without markers is refused before the work
    with TemporaryDirectory() as folder:
        outcomes = run_in_folder(EXPERIMENT, Path(folder), n_seeds=1, n_jobs=1)
    with new_file(path, overwrite=True) as file:
        file.write(insert_table(text, markdown(outcomes)).encode())


_PARTS = {
    f"{method} on {crowd.name}": (method, crowd)
    for method in exported_methods()
    for crowd in CROWDS
}


def _measure(part: str, seed: int) -> dict[CellId, float]:
    method, crowd = _PARTS[part]
    estimator = getattr(bayescrowd, method)()
    ann = loaded_crowd(crowd.name).annotations
    seconds = []
    for _ in range(2):  # the first fit of a process may compile
        start = time.perf_counter()
        estimator.fit(ann)
        seconds.append(time.perf_counter() - start)
    return {
        CellId(method, crowd.name): label_error(estimator.probas_, crowd.name),
        CellId(method, _seconds(crowd.name)): min(seconds),
    }


def _seconds(name: str) -> str:
    """Name of the column with a crowd's seconds."""
    return f"{name}, seconds"


def _draw(outcomes: Sequence[Outcome]) -> Figure:
    """Draw errors as dots, with one row per method and one panel per crowd."""
    measured = {outcome.cell.id: outcome.measured for outcome in outcomes}
    methods = list(dict.fromkeys(id_.row for id_ in measured))
    figure = Figure(figsize=(11, 0.3 * len(methods) + 1.4), dpi=150, layout="constrained")
    panels = figure.subplots(1, len(CROWDS), sharey=True)
    for axes, crowd in zip(panels, CROWDS, strict=True):
        errors = [measured[CellId(method, crowd.name)] for method in methods]
        axes.hlines(range(len(methods)), 0, errors, color="#bbbbbb", linewidth=1)
        axes.plot(errors, range(len(methods)), "o", color="#1f5a96", markersize=5)
        axes.set(title=crowd.name, xlim=(0, 1.1 * max(errors)), xlabel="error in %")
        axes.set_yticks(range(len(methods)), methods)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].invert_yaxis()
    return figure


def _cells(part: str) -> list[Cell]:
    method, crowd = _PARTS[part]
    columns = {crowd.name: "%", _seconds(crowd.name): "s"}
    return [
        Cell(
            id=CellId(method, column),
            part=part,
            published=None,
            unit=unit,
            decimals=2,
            n_items=crowd.n_scored if unit == "%" else None,
            reason=None,
        )
        for column, unit in columns.items()
    ]


EXPERIMENT = Experiment(
    name="methods",
    title="Label error (%) and seconds of every method with its defaults",
    parts=tuple(
        Part(name, settings_of(getattr(bayescrowd, method)()), is_random=False)
        for name, (method, _) in _PARTS.items()
    ),
    cells=tuple(cell for name in _PARTS for cell in _cells(name)),
    measure=_measure,
    draw=_draw,
    notes=("Seconds are the faster of two fits; running several processes (--jobs) slows them.",),
)


if __name__ == "__main__":
    main()
