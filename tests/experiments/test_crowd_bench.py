"""Methods on a folder of crowds: scores and standard errors by hand, resuming, own methods."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.experiments.bench import running
from bayescrowd.experiments.bench.comparison import Comparison
from bayescrowd.experiments.bench.contenders import Contender, exported_contender, own_contender
from bayescrowd.experiments.bench.crowds import BenchCrowd, read_crowds
from bayescrowd.experiments.bench.measurement import Failure, Measurement, measure
from bayescrowd.experiments.bench.records import BenchJournal
from bayescrowd.experiments.bench.running import run_bench

NAMES = ("MajorityVote", "DawidSkene", "OneCoinDawidSkene")


def write_crowd(folder, name, seed, n_tasks=60):
    data = bc.simulate.crowd(n_tasks, 6, 2, accuracy=0.7, seed=seed)
    (folder / name).mkdir(parents=True)
    data.annotations.to_frame().to_csv(folder / name / "labels.csv", index=False)
    data.truth.rename_axis("task").rename("label").to_csv(folder / name / "truth.csv")


@pytest.fixture
def folder(tmp_path):
    for seed, name in enumerate(("ants", "bees", "cats")):
        write_crowd(tmp_path / "crowds", name, seed, n_tasks=40 + 10 * seed)
    return tmp_path / "crowds"


@pytest.fixture
def measured(monkeypatch):
    """The names of what is measured, in order."""
    done = []

    def count(contender, crowd):
        done.append((crowd.name, contender.name))
        return measure(contender, crowd)

    monkeypatch.setattr(running, "measure", count)
    return done


def contenders(*names):
    return [exported_contender(name) for name in names]


def bench(folder, *names, **options):
    return run_bench(read_crowds(folder), contenders(*names), **options)


def made(errors, log_losses=None, ece=0.1, votes=(math.nan, math.nan)):
    errors = np.array(errors, dtype=float)
    losses = errors if log_losses is None else np.array(log_losses, dtype=float)
    return Measurement(errors, losses, ece, 1.0, votes, ())


def comparison(results, reference="AutoAggregator"):
    """A comparison of given results, by crowd and method."""
    ann = bc.Annotations.from_matrix([["a", "b"], ["b", "b"]])
    crowds = tuple(BenchCrowd(c, ann, pd.Series(dtype=object), 0, c) for c in results)
    methods = tuple(Contender(m, m, object, "", "") for m in next(iter(results.values())))
    flat = {(c, m): found for c, row in results.items() for m, found in row.items()}
    return Comparison(crowds, methods, flat, reference)


def test_scores_are_those_of_the_metrics(folder):
    found = bench(folder, *NAMES)
    for name in found.crowd_names:
        ann = bc.read_annotations(folder / name / "labels.csv")
        truth = bc.read_truth(folder / name / "truth.csv", ann)
        for method in (*NAMES, "AutoAggregator"):
            probas = getattr(bc, method)().fit(ann).probas_
            of_truth = np.array([probas.loc[task, label] for task, label in truth.items()])
            expected = {
                "error": bc.metrics.error_rate(probas, truth),
                "log_loss": -np.log(np.clip(of_truth, 1e-6, 1)).mean(),
                "ece": bc.metrics.expected_calibration_error(probas, truth),
            }
            for key, value in expected.items():
                assert found.scores(key).loc[name, method] == pytest.approx(value, rel=1e-12)
    assert found.means("error").to_numpy() == pytest.approx(found.scores("error").mean())
    assert (found.scores("seconds") > 0).all(axis=None)


def test_paired_differences_by_hand():
    """Differences 1, 0, 0, 1 have mean 1/2 and variance 1/3; over crowds, 1/2 and -1/4."""
    found = comparison(
        {
            "one": {"MajorityVote": made([1, 1, 0, 1]), "AutoAggregator": made([0, 1, 0, 0])},
            "two": {"MajorityVote": made([0, 0, 0, 1]), "AutoAggregator": made([1, 0, 0, 1])},
        }
    )
    gap, error = found.differences("error")
    assert gap["MajorityVote"].to_list() == [0.5, -0.25]
    assert error.loc["one", "MajorityVote"] == pytest.approx(math.sqrt(1 / 3 / 4))
    assert error.loc["two", "MajorityVote"] == pytest.approx(0.25)
    assert (gap["AutoAggregator"] == 0).all()
    mean = found.mean_differences("error").loc["MajorityVote"]
    assert mean["difference"] == pytest.approx(0.125)
    assert mean["standard_error"] == pytest.approx(0.75 / math.sqrt(2) / math.sqrt(2))
    assert mean["n_crowds"] == 2


def test_paired_error_of_binary_differences_has_a_closed_form():
    """With a tasks won and b lost of n, its square is (a + b - (a - b)^2 / n) / (n - 1) / n."""
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 2, size=(2, 200))
    found = comparison({"c": {"MajorityVote": made(one), "AutoAggregator": made(other)}})
    lost, won = ((one == 1) & (other == 0)).sum(), ((one == 0) & (other == 1)).sum()
    variance = (lost + won - (lost - won) ** 2 / 200) / 199 / 200
    gap, error = found.differences("error")
    assert gap.loc["c", "MajorityVote"] == pytest.approx((lost - won) / 200)
    assert error.loc["c", "MajorityVote"] == pytest.approx(math.sqrt(variance))
    assert math.isnan(found.mean_differences("error").loc["MajorityVote", "standard_error"])


def test_worse_than_vote_needs_points_and_certainty():
    zeros = [0] * 1000
    rows = {
        "clear": [1] * 100 + [0] * 900,  # 10 points, standard error .95
        "small": [1] * 20 + [0] * 980,  # 2 points
        "close": [1] * 40 + [0] * 960,  # 4 points, standard error .62: not 3 by two of them
    }
    few = {"unsure": ([0] * 9 + [1], [0] * 10)}  # 10 points, standard error 10
    results = {
        name: {"MajorityVote": made(zeros), "AutoAggregator": made(errors)}
        for name, errors in rows.items()
    }
    for name, (errors, votes) in few.items():
        results[name] = {"MajorityVote": made(votes), "AutoAggregator": made(errors)}
    counts = comparison(results).worse_than_vote()
    assert counts.loc["AutoAggregator"].to_list() == [2, 1]
    assert counts.loc["MajorityVote"].to_list() == [0, 0]


def test_a_failure_leaves_its_crowd_out_of_the_means():
    found = comparison(
        {
            "one": {"MajorityVote": made([1, 0]), "AutoAggregator": Failure("ValueError: no")},
            "two": {"MajorityVote": made([0, 0]), "AutoAggregator": made([1, 1])},
        }
    )
    assert found.failures == {("one", "AutoAggregator"): "ValueError: no"}
    assert found.means("error").to_dict() == {"MajorityVote": 0.0, "AutoAggregator": 1.0}
    rows = found.rows().set_index(["crowd", "method"])
    assert rows.loc[("one", "AutoAggregator"), "failure"] == "ValueError: no"
    assert math.isnan(rows.loc[("one", "MajorityVote"), "error_difference"])
    assert found.worse_than_vote().loc["AutoAggregator", "n_worse"] == 1  # crowd two


def test_effective_votes_are_those_of_the_reference():
    found = comparison(
        {"c": {"MajorityVote": made([1]), "AutoAggregator": made([0], votes=(1.2, 1.7))}}
    )
    assert found.effective_votes().loc["c"].to_list() == [2.0, 1.2, 1.7]


def test_class_that_nobody_chose_costs_the_most(tmp_path):
    home = tmp_path / "crowd"
    home.mkdir()
    (home / "labels.csv").write_text("task,worker,label\n1,x,a\n1,y,a\n2,x,b\n2,y,b\n")
    (home / "truth.csv").write_text("task,label\n1,a\n2,c\n")
    (crowd,) = read_crowds(tmp_path)
    assert crowd.n_unchosen == 1
    found = measure(exported_contender("MajorityVote"), crowd)
    assert found.errors.tolist() == [0, 1]
    assert found.log_losses == pytest.approx([0, -math.log(1e-6)], abs=1e-12)


def test_a_run_resumes_from_its_journal(folder, tmp_path, measured):
    path = tmp_path / "bench.jsonl"
    first = bench(folder, *NAMES, journal=path)
    assert len(measured) == 12
    again = bench(folder, *NAMES, journal=path)
    assert len(measured) == 12
    pd.testing.assert_frame_equal(first.rows(), again.rows())


def test_a_torn_last_line_is_measured_again(folder, tmp_path, measured):
    path = tmp_path / "bench.jsonl"
    first = bench(folder, *NAMES, journal=path)
    path.write_bytes(path.read_bytes()[:-100])
    again = bench(folder, *NAMES, journal=path)
    assert measured[12:] == [("cats", "AutoAggregator")]
    pd.testing.assert_frame_equal(
        first.rows().drop(columns="seconds"), again.rows().drop(columns="seconds")
    )
    bench(folder, *NAMES, journal=path)
    assert len(measured) == 13


@pytest.mark.parametrize("file", ["labels.csv", "truth.csv"])
def test_a_changed_crowd_is_measured_again(folder, tmp_path, measured, file):
    path = tmp_path / "bench.jsonl"
    bench(folder, "MajorityVote", journal=path)
    lines = (folder / "bees" / file).read_text().splitlines()
    (folder / "bees" / file).write_text("\n".join(lines[:-1]) + "\n")
    del measured[:]
    bench(folder, "MajorityVote", journal=path)
    assert measured == [("bees", "MajorityVote"), ("bees", "AutoAggregator")]


def test_other_settings_or_versions_are_measured_again(folder, tmp_path):
    (crowd, *_) = read_crowds(folder)
    method = exported_contender("MajorityVote")
    BenchJournal(tmp_path / "j").add(method, crowd, made([0] * len(crowd.truth)))
    journal = BenchJournal(tmp_path / "j")
    assert journal.find(method, crowd) is not None
    assert journal.find(method._replace(settings="seed=1"), crowd) is None
    assert journal.find(method._replace(version="0"), crowd) is None
    assert journal.find(method, crowd._replace(name="renamed")) is not None


def test_damaged_journals_are_refused(folder, tmp_path):
    path = tmp_path / "bench.jsonl"
    bench(folder, "MajorityVote", journal=path)
    header, line, *_ = path.read_text().splitlines()
    for change in ({"errors": [0, "x"]}, {"log_losses": []}, {"digest": 3}):
        path.write_text(f"{header}\n{json.dumps(json.loads(line) | change)}\n")
        with pytest.raises(ValueError, match="line 2: this is not a line of the journal"):
            BenchJournal(path)
    path.write_text('{"journal": "runs"}\n')
    with pytest.raises(ValueError, match="the journal has journal 'runs'"):
        BenchJournal(path)


def test_control_a_failure_is_tried_again(folder, tmp_path, monkeypatch):
    path = tmp_path / "bench.jsonl"
    monkeypatch.setattr(running, "measure", lambda method, crowd: Failure("no"))
    assert len(bench(folder, "MajorityVote", journal=path).failures) == 6
    monkeypatch.undo()
    assert bench(folder, "MajorityVote", journal=path).failures == {}


OWN = """
import pandas as pd

class Share:
    def fit_predict_proba(self, table):
        votes = pd.crosstab(table["task"], table["label"])
        return votes.div(votes.sum(axis=1), axis=0)

class Fitted:
    def fit(self, table):
        self.probas_ = Share().fit_predict_proba(table)

class Chained(Fitted):
    def fit(self, table):
        super().fit(table)
        return self

class Fails:
    def fit_predict_proba(self, table):
        raise RuntimeError("too\\nfew raters")

class Renames(Share):
    def fit_predict_proba(self, table):
        return super().fit_predict_proba(table).rename(columns=str)

class Array(Share):
    def fit_predict_proba(self, table):
        return super().fit_predict_proba(table).to_numpy()

class Needs:
    def __init__(self, strength): pass
    def fit(self, table): pass

class Useless:
    pass

class MajorityVote(Share):
    pass
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module in the current directory whose name no other test uses."""
    name = f"own_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    return name


@pytest.mark.parametrize("kind", ["Share", "Fitted", "Chained"])
def test_own_methods_are_measured(folder, own, kind):
    found = run_bench(read_crowds(folder), [own_contender(f"{own}:{kind}")])
    assert found.method_names == ["MajorityVote", kind, "AutoAggregator"]
    assert found.failures == {}
    scores = found.scores("log_loss")
    assert scores[kind].to_numpy() == pytest.approx(scores["MajorityVote"].to_numpy())


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("Fails", "RuntimeError: too few raters"),
        ("Renames", "ValueError: the probabilities have the columns"),
        ("Array", "TypeError: probabilities came as ndarray; expected a DataFrame"),
    ],
)
def test_a_failing_method_does_not_end_the_run(folder, own, kind, reason):
    found = run_bench(read_crowds(folder), [own_contender(f"{own}:{kind}")])
    assert len(found.failures) == 3
    assert all(text.startswith(reason) for text in found.failures.values())
    assert found.scores("error")["AutoAggregator"].notna().all()


def test_an_own_class_does_not_hide_one_of_the_package(folder, own):
    found = run_bench(read_crowds(folder), [own_contender(f"{own}:MajorityVote")])
    assert found.method_names == ["MajorityVote", f"{own}:MajorityVote", "AutoAggregator"]


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("", "expected package.module:Class"),
        (":", "expected package.module:Class"),
        (":Absent", "has no class 'Absent'"),
        (":pd", "has no class 'pd'"),
        (":Useless", "neither fit nor fit_predict_proba"),
        (":Needs", "constructing it without arguments failed: TypeError"),
        ("x:Share", "ModuleNotFoundError"),
    ],
)
def test_bad_own_methods_are_refused(own, end, message):
    with pytest.raises(ValueError, match=message):
        own_contender(f"{own}{end}")


def test_a_module_that_fails_on_import_is_refused(tmp_path, monkeypatch):
    (tmp_path / "breaks_on_import.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="importing breaks_on_import failed: ZeroDivisionError"):
        own_contender("breaks_on_import:Any")


def test_an_edited_method_has_another_version(own, tmp_path):
    before = own_contender(f"{own}:Share")
    (tmp_path / f"{own}.py").write_text(OWN + "# edited\n")
    assert own_contender(f"{own}:Share").version != before.version


def test_only_aggregators_are_contenders():
    with pytest.raises(ValueError, match="no aggregator 'Annotations'"):
        exported_contender("Annotations")
