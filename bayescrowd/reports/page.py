"""The report as one HTML file that needs no network.

Everything that comes from the data passes through Jinja's escaping. As a second line of defence,
the page's own policy (`Content-Security-Policy`) lets no script run but the one whose hash it
names, and loads nothing.
"""

from __future__ import annotations

import base64
import hashlib
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import jinja2

from bayescrowd.aggregation.auto.aggregator import AutoAggregator
from bayescrowd.aggregation.protocol import Aggregator, Gold
from bayescrowd.checks.parameters import OpenFraction, Seed, Whole, validate_arguments
from bayescrowd.data.truth import Truth
from bayescrowd.estimator import check_is_fitted
from bayescrowd.io.writing import check_target, csv_text, new_file
from bayescrowd.reports.bars import bar_chart, interval_strip
from bayescrowd.reports.calibration_curve import calibration_curve
from bayescrowd.reports.document import LEVEL, Cell, Document, Interval, Kind
from bayescrowd.reports.gathering import gather, most_refits
from bayescrowd.reports.heat_map import heat_map
from bayescrowd.reports.svg import DASH, Svg, share_text
from bayescrowd.reports.vote_scale import vote_scale

__all__ = ["Report", "render", "report"]


@dataclass(frozen=True, eq=False)
class Report:
    """A report as plain values and as a page.

    Attributes:
        document: what the report says.
        html: the page.
    """

    document: Document
    html: str = field(repr=False)

    def __repr__(self) -> str:
        headline = self.document.headline
        return (
            f"Report({headline.n_settled:,} of {headline.n_tasks:,} tasks settled, expected "
            f"accuracy {headline.accuracy.value:.0%}, {len(self.html) / 1e3:,.0f} kB)"
        )

    @validate_arguments
    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the page.

        Args:
            path: name of the file, such as report.html.
            overwrite: whether to replace an existing file.
        """
        with new_file(path, overwrite=overwrite) as file:
            file.write(self.html.encode())


@validate_arguments
def report(
    data: Any,
    *,
    gold: Gold = None,
    truth: Truth | None = None,
    posterior: Any = None,
    path: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    settled: OpenFraction = 0.95,
    most_dropped: Annotated[int, Whole(0)] | None = None,
    title: str = "Crowd report",
    source: str = "labels",
    facts: Mapping[str, str] | None = None,
    raw_cells: bool = False,
    seed: Seed = 0,
) -> Report:
    """Report on the labels of a crowd, in one HTML file that needs no network.

    The page says which tasks are settled and which need more labels, how many labels are expected
    to be right, whether the raters err together, how good each of them is and how far they agree,
    what is confused with what, what other methods say and, with truth, how right the labels are.

    Args:
        data: a fitted aggregator, or labels, to which the default is fitted.
        gold: task -> label of tasks whose truth may be used, if `data` is not fitted.
        truth: task -> label of tasks whose truth is used for scoring only.
        posterior: draws of `sample_posterior` given the same labels, which add an interval of each
            rater's accuracy.
        path: where to write the page; by default it is only returned.
        overwrite: whether to replace an existing file.
        settled: a task is settled if its label is at least this probable.
        most_dropped: largest number of raters to refit the default without, which shows whom one
            could spare; 0 for none, by default 8, or 3 on more than 20,000 labels.
        title: title of the page.
        source: where the labels come from, such as the name of a file.
        facts: further settings that the page should state, by name.
        raw_cells: whether the tasks that the page offers as CSV keep text that a spreadsheet would
            run as a formula; by default, it gets an apostrophe in front.
        seed: seed of the default's fit, if `data` is not fitted.

    Returns:
        The report: `document`, `html` and `save(path)`.

    Raises:
        ValueError: `gold` was given for a fitted aggregator, or the truth names no task of the
            labels.

    Examples:
        >>> import bayescrowd as bc
        >>> crowd = bc.simulate.crowd(200, 10, accuracy=0.8, seed=1)
        >>> page = bc.report(crowd.annotations, truth=crowd.truth, most_dropped=0)
        >>> page.document.headline.n_tasks, "<html" in page.html
        (200, True)
    """
    if path is not None:
        check_target(path, overwrite=overwrite)
    if isinstance(data, Aggregator):
        if gold is not None:
            raise ValueError("gold was given with a fitted aggregator; expected it in its fit")
        check_is_fitted(data)
        est = data
    else:
        est = AutoAggregator(seed=seed).fit(data, gold)
    document = gather(
        est,
        truth=truth,
        posterior=posterior,
        settled=settled,
        most_dropped=most_refits(est._annotations) if most_dropped is None else most_dropped,
        title=title,
        source=source,
        facts=facts or {},
    )
    made = Report(document, render(document, raw_cells=raw_cells))
    if path is not None:
        made.save(path, overwrite=overwrite)
    return made


def render(document: Document, *, raw_cells: bool = False) -> str:
    """The page of a document.

    Args:
        document: what to say.
        raw_cells: whether the download keeps text that a spreadsheet would run as a formula.
    """
    script = _text_of("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _environment()
        .get_template("page.html")
        .render(
            doc=document,
            level=f"{LEVEL:.0%}",
            style=Svg(_text_of("style.css")),
            script=Svg(script),
            script_hash=digest,
            contested_csv=csv_text(document.contested.frame, raw_cells=raw_cells),
        )
    )


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "cell": _cell_text,
        "ends": _ends_text,
        "key": _sort_key,
        "percent": share_text,
        "strip": _strip,
    }
    environment.globals |= {
        "bar_chart": bar_chart,
        "heat_map": heat_map,
        "calibration_curve": calibration_curve,
        "vote_scale": vote_scale,
    }
    return environment


_TEMPLATES = Path(__file__).with_name("templates")


def _text_of(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _cell_text(cell: Cell, kind: Kind) -> str:
    """The content of a cell, an interval without its ends."""
    value = cell.value if isinstance(cell, Interval) else cell
    if value is None:
        return DASH
    return value if isinstance(value, str) else _number_text(value, kind)


def _ends_text(cell: Cell, kind: Kind) -> str:
    """The ends of an interval; a dash if it has none, and nothing for other cells."""
    if not isinstance(cell, Interval) or math.isnan(cell.value):
        return ""
    if math.isnan(cell.lower) or math.isnan(cell.upper):
        return DASH
    return f"{_number_text(cell.lower, kind)} to {_number_text(cell.upper, kind)}"


def _number_text(value: float, kind: Kind) -> str:
    if math.isnan(value):
        return DASH
    if kind == "count":
        return f"{value:,.0f}"
    text = f"{value:.1%}" if kind == "share" else f"{value:,.3f}"
    return text.replace("-", "\N{MINUS SIGN}")


def _sort_key(cell: Cell) -> str:
    """What a column of numbers is sorted by; empty where nothing is known."""
    value = cell.value if isinstance(cell, Interval) else cell
    if value is None or isinstance(value, str) or math.isnan(value):
        return ""
    return f"{value:.6g}"


def _strip(cell: Cell) -> str:
    """The picture of an interval between 0 and 1, if there is one."""
    drawable = isinstance(cell, Interval) and not math.isnan(cell.value)
    return interval_strip(cell) if drawable and isinstance(cell, Interval) else Svg()
