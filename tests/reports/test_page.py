"""The report as plain values and as a page: by hand, hostile names, sizes, bad input."""

import io
import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.reports.document import Interval
from bayescrowd.reports.headline import expected_accuracy
from bayescrowd.reports.page import render
from bayescrowd.reports.task_findings import MOST_CHARACTERS

HOSTILE = [
    "<script>window.hit=1</script>",
    '"><img src=x onerror=window.hit=1>',
    "</script><script>window.hit=1</script>",
    "</style></title><svg onload=window.hit=1>",
    '=HYPERLINK("http://127.0.0.1/","x")',
    "{{ 7 * 7 }}{% raw %}",
    "+1+1",
    "-2+3",
    "@SUM(1)",
    "ordinary",
]


@pytest.fixture(scope="module")
def four_tasks():
    """A sure a, two a and one b, a sure b, and a tie."""
    matrix = [["a", "a", "a"], ["a", "a", "b"], ["b", "b", "b"], ["a", "b", None]]
    frame = pd.DataFrame(matrix, index=["t1", "t2", "t3", "t4"], columns=["x", "y", "z"])
    return bc.MajorityVote().fit(bc.Annotations.from_matrix(frame))


@pytest.fixture(scope="module")
def four_task_report(four_tasks):
    truth = {"t1": "a", "t2": "b", "t3": "b", "t4": "a"}
    return bc.report(four_tasks, truth=truth, most_dropped=0)


@pytest.fixture(scope="module")
def hostile_report():
    """Tasks, raters and classes with names that are no names."""
    data = bc.simulate.crowd(60, len(HOSTILE), 3, labels_per_task=4, accuracy=0.6, seed=2)
    frame = data.annotations.to_frame()
    frame["task"] = [f"{HOSTILE[t % len(HOSTILE)]}{t}" for t in frame["task"]]
    frame["worker"] = [HOSTILE[w] for w in frame["worker"]]
    frame["label"] = [HOSTILE[k] for k in frame["label"]]
    return bc.report(
        frame, title=HOSTILE[0], source=HOSTILE[1], facts={HOSTILE[2]: HOSTILE[3]}, most_dropped=1
    )


class Page(HTMLParser):
    """What a page consists of."""

    def __init__(self, html):
        super().__init__()
        self.elements = []
        self.inside = []
        self.texts = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside.append(tag)

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"script", "style"} & set(self.inside):
            self.texts.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


def test_headline_by_hand(four_task_report):
    headline = four_task_report.document.headline
    # t1 and t3 are unanimous; t2 has 2/3, and t4 is a tie.
    assert (headline.n_tasks, headline.n_settled, headline.n_unlabelled) == (4, 2, 0)
    shares = {count.name: count.share.value for count in headline.shares}
    assert sum(shares.values()) == 1
    assert {count.name: count.number for count in headline.certainty if count.number} == {
        "50% to 60%": 1,
        "60% to 70%": 1,
        "99% to 100%": 2,
    }


def test_accuracy_against_truth_by_hand(four_task_report):
    measured = four_task_report.document.headline.measured
    # Right on t1 and t3, wrong on t2, half right on the tie. Wilson for 0.625 of 4, z = 1.6449:
    # centre (0.625 + 0.33819) / 1.67638, half 1.6449 * 0.31760 / 1.67638.
    np.testing.assert_allclose(measured, [0.625, 0.26293, 0.88620], atol=2e-4)


def test_confusions_by_hand(four_task_report):
    document = four_task_report.document
    # Labels count by the class probabilities of their tasks: class a gets 3 + 2/3 * 3 + 1/2 * 2 = 6
    # labels, of which b: 2/3 + 1/2; class b gets 1/3 * 3 + 3 + 1/2 * 2 = 5, of which a: 2/3 + 1/2.
    a_as_b, b_as_a = (2 / 3 + 1 / 2) / 6, (2 / 3 + 1 / 2) / 5
    expected = [[1 - a_as_b, a_as_b], [b_as_a, 1 - b_as_a]]
    np.testing.assert_allclose(document.confusion_matrix.values, expected)
    assert {row[:2]: row[2] for row in document.confusions.rows} == pytest.approx(
        {("a", "b"): a_as_b, ("b", "a"): b_as_a}
    )


def test_contested_tasks_by_hand(four_task_report):
    frame = four_task_report.document.contested.frame
    assert frame["task"].tolist() == ["t4", "t2"]
    assert frame["probability"].tolist() == [0.5, 0.6667]
    assert frame["second_probability"].tolist() == [0.5, 0.3333]
    assert frame["votes"].tolist() == ["a: 1, b: 1", "a: 2, b: 1"]
    assert frame["n_votes"].tolist() == [2, 3]


def test_raters_by_hand(four_tasks, four_task_report):
    table = four_task_report.document.raters
    titles = [column.title for column in table.columns]
    rows = {row[0]: dict(zip(titles, row, strict=True)) for row in table.rows}
    assert [rows[name]["labels"] for name in "xyz"] == [4, 4, 3]
    # x and y both agree with the unanimous tasks and t2; the tie goes to one of them.
    tie = four_tasks.labels_["t4"]
    assert rows["x"]["like the answer"] == (1.0 if tie == "a" else 0.75)
    assert rows["y"]["like the answer"] == (1.0 if tie == "b" else 0.75)
    assert rows["z"]["like the answer"] == pytest.approx(2 / 3)


def test_expected_accuracy_in_closed_form():
    many = expected_accuracy(np.full(10**6, 0.8))
    # log(0.8 / 0.2) = 1.38629, less and plus 0.7
    ends = [1 / (1 + math.exp(-(1.38629 + step))) for step in (0, -0.7, 0.7)]
    np.testing.assert_allclose(many, ends, atol=1e-4)
    few = expected_accuracy(np.full(10, 0.8))
    assert few.lower < many.lower < many.upper < few.upper


def test_certain_accuracy_has_no_interval():
    assert expected_accuracy(np.ones(5)).value == 1
    assert math.isnan(expected_accuracy(np.ones(5)).lower)


def test_shares_have_intervals_with_gold_alone():
    data = bc.simulate.crowd(80, 8, 3, labels_per_task=4, accuracy=0.7, seed=3)
    gold = data.truth.iloc[:20]
    est = bc.aggregate(data.annotations, gold)
    with_gold = bc.report(est, most_dropped=0).document.headline
    assert all(not math.isnan(count.share.lower) for count in with_gold.shares)
    expected = [est.gold_report_.accuracy[name] for name in ("estimate", "lower", "upper")]
    np.testing.assert_allclose(with_gold.accuracy, expected)
    without = bc.report(data.annotations, most_dropped=0).document.headline
    assert all(math.isnan(count.share.lower) for count in without.shares)


def test_copies_are_a_group():
    data = bc.simulate.panel(150, 6, clusters=[3], copying=1.0, accuracy=[0.8] * 6, seed=1)
    dependence = bc.report(data.annotations, most_dropped=2).document.dependence
    ((number, size, agree, expected, names),) = dependence.clusters.rows
    assert (number, size, agree, names) == (1, 3, 1.0, "0, 1, 2")
    assert expected < 0.9
    assert len(dependence.dropping.rows) == 2
    assert "independent votes" in dependence.summary


def test_same_data_same_page():
    data = bc.simulate.crowd(40, 6, 2, labels_per_task=3, seed=5).annotations
    pages = [bc.report(bc.MajorityVote().fit(data), most_dropped=0).html for _ in range(2)]
    # but for the seconds of the fits
    one, other = (re.sub(r'<section id="methods".*?</section>', "", p, flags=re.S) for p in pages)
    assert one == other


def test_hostile_names_are_text(hostile_report):
    page = Page(hostile_report.html)
    scripts = page.all("script")
    assert [attrs.get("type") for attrs in scripts] == ["application/json", None]
    assert not page.all("img")
    assert not page.all("b")
    handlers = [key for _, attrs in page.elements for key in attrs if key.startswith("on")]
    assert handlers == []
    text = "".join(page.texts)
    for name in HOSTILE:
        assert name in text
    assert "49" not in {line.strip() for line in page.texts}


def test_page_loads_nothing(hostile_report):
    page = Page(hostile_report.html)
    loaded = [
        attrs.get(key) for _, attrs in page.elements for key in ("src", "href") if key in attrs
    ]
    assert all(target.startswith("#") for target in loaded)
    assert "@import" not in hostile_report.html
    assert "url(" not in hostile_report.html
    (policy,) = (m["content"] for m in page.all("meta") if "http-equiv" in m)
    assert policy.startswith("default-src 'none';")
    assert "script-src 'sha256-" in policy


def downloaded(html):
    (block,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', html, re.S)
    return json.loads(block)


def test_download_runs_in_no_spreadsheet(hostile_report):
    table = pd.read_csv(io.StringIO(downloaded(hostile_report.html)), dtype=str)
    frame = hostile_report.document.contested.frame
    assert len(table) == len(frame)
    for name in ("task", "label", "second", "votes"):
        for written, meant in zip(table[name], frame[name], strict=True):
            starts = meant[0] in "=+-@"
            assert written == (f"'{meant}" if starts else meant)
    assert table["probability"].astype(float).tolist() == frame["probability"].tolist()


def test_raw_cells_are_kept():
    frame = pd.DataFrame({"task": ["=1+1", "b"] * 2, "worker": list("xxyy"), "label": list("abba")})
    document = bc.report(frame, most_dropped=0).document
    for raw, start in ((False, "'=1+1,"), (True, "=1+1,")):
        lines = downloaded(render(document, raw_cells=raw)).splitlines()
        assert any(line.startswith(start) for line in lines)


def test_every_table_can_be_read_without_scripts(four_task_report):
    page = Page(four_task_report.html)
    assert len(page.all("table")) == len(page.all("caption")) >= 5
    assert all("hidden" in attrs for attrs in page.all("p") if attrs.get("class") == "search")
    assert all("hidden" in attrs for attrs in page.all("p") if attrs.get("class") == "download")
    assert all(attrs["scope"] in ("col", "row") for attrs in page.all("th"))


def test_undefined_measures_are_dashes():
    frame = pd.DataFrame({"task": [1, 2, 3], "worker": ["x", "y", "x"], "label": ["a", "b", "a"]})
    report = bc.report(frame, most_dropped=0)
    assert all(math.isnan(value.value) for _, value in report.document.agreement.rows)
    start = report.html.index('id="table-agreement"')
    cells = re.findall(
        r"<td[^>]*>(.*?)</td>", report.html[start : report.html.index("</table>", start)]
    )
    assert set(cells) == {"-"}
    assert report.document.pair_matrix is None


def test_long_names_do_not_make_a_long_page():
    data = bc.simulate.crowd(150, 10, 2, labels_per_task=3, accuracy=0.6, seed=1).annotations
    frame = data.to_frame()
    frame["task"] = [f"{t}-" + "x" * 20_000 for t in frame["task"]]
    report = bc.report(bc.MajorityVote().fit(frame), most_dropped=0)
    contested = report.document.contested
    n_open = report.document.headline.n_tasks - report.document.headline.n_settled
    assert 0 < len(contested.frame) < n_open
    assert contested.frame["task"].str.len().sum() <= MOST_CHARACTERS
    assert f"of {n_open}" in contested.note
    assert len(report.html) < 1.5e6


@pytest.mark.slow
def test_page_about_many_labels_is_small_enough_for_a_mail():
    data = bc.simulate.crowd(25_000, 2_000, 6, labels_per_task=4, accuracy=0.6, seed=1).annotations
    frame = data.to_frame()
    frame["task"] = "https://example.org/a/rather/long/address/of/a/picture/" + frame[
        "task"
    ].astype(str)
    report = bc.report(frame, most_dropped=0)
    assert report.document.raters.note
    assert report.document.contested.table.note
    assert len(report.html.encode()) < 3e6


@pytest.mark.slow
def test_posterior_adds_intervals_of_the_raters():
    data = bc.simulate.crowd(80, 5, 2, labels_per_task=4, accuracy=0.8, seed=1)
    draws = bc.sample_posterior("one_coin", data.annotations, chains=2, draws=50, most_draws=50)
    document = bc.report(data.annotations, posterior=draws, most_dropped=0).document
    column = [column.title for column in document.raters.columns].index("posterior")
    expected = bc.worker_posterior(draws, probability=0.9)
    for row in document.raters.rows:
        found = expected.loc[int(row[0]), ["accuracy", "lower", "upper"]]
        np.testing.assert_allclose(row[column], found.to_numpy(dtype=float))
    assert "one_coin" in document.posterior
    few = data.annotations.select_tasks(data.annotations.tasks[:40])
    others = bc.sample_posterior("one_coin", few, chains=1, draws=20, most_draws=20)
    with pytest.raises(ValueError, match="posterior knows nothing of task"):
        bc.report(data.annotations, posterior=others, most_dropped=0)


def test_report_is_written_and_prints_itself(tmp_path, four_tasks):
    path = tmp_path / "report.html"
    report = bc.report(four_tasks, path=path, most_dropped=0)
    assert path.read_text(encoding="utf-8") == report.html
    assert repr(report).startswith("Report(2 of 4 tasks settled")
    with pytest.raises(FileExistsError):
        report.save(path)
    report.save(path, overwrite=True)


def test_bad_input(four_tasks):
    with pytest.raises(ValueError, match="gold was given with a fitted aggregator"):
        bc.report(four_tasks, gold={"t1": "a"})
    with pytest.raises(ValueError, match="expected at least one"):
        bc.report(four_tasks, truth={"t1": None})
    fitted = bc.MajorityVote().fit(four_tasks._annotations, {"t1": "a"})
    with pytest.raises(ValueError, match="every task of the truth is also in the gold"):
        bc.report(fitted, truth={"t1": "a"})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bluebird", "rte", "dog"])
def test_expected_accuracy_of_public_crowds(name):
    if not bc.datasets.is_local(name):
        pytest.skip(f"the files of {name} are not here")
    data = bc.load_dataset(name)
    headline = bc.report(data.annotations, truth=data.truth, most_dropped=0).document.headline
    assert headline.accuracy.lower < headline.measured.value < headline.accuracy.upper
    assert isinstance(headline.measured, Interval)
