"""What every aggregator promises, checked on every one that the package exports.

An aggregator is found here by being exported: a new one is in the suite without a line of its own,
unless it needs arguments to be constructed.
"""

import inspect
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import bayescrowd as bc
from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.aggregation.quality import Tally, worker_quality
from bayescrowd.aggregation.worker_rows import DenseRows
from bayescrowd.data.truth import TruthWarning

ARGUMENTS: dict[str, dict[str, Any]] = {
    "AutoAggregator": {"n_iter": 2},
    "EmpiricalBayesDawidSkene": {"n_iter": 8},
    "WorkerTypes": {"n_iter": 8},
}
"""Constructor arguments of aggregators that cannot do without, or would take long."""

STARTS_BY_WORKER = {"KOS"}
"""Draw a random start for each label in the order of the workers' ids.

On a thin crowd, where starts end in different places, ids in another order are another seed.
"""


def exported_aggregators():
    classes = [getattr(bc, name) for name in bc.__all__ if name[0].isupper()]
    return [c for c in classes if inspect.isclass(c) and issubclass(c, Aggregator)]


AGGREGATORS = exported_aggregators()

# Whether an iteration has settled on a crowd made up here is none of the contract.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

every_aggregator = pytest.mark.parametrize("aggregator", AGGREGATORS, ids=lambda c: c.__name__)


def make(aggregator, **parameters):
    return aggregator(**ARGUMENTS.get(aggregator.__name__, {}), **parameters)


def crowd_frame(seed=0, *, n_tasks=40, n_workers=7, labels_per_task=5, n_classes=3, accuracy=0.8):
    """Labels of a decent crowd, with ids in words and rows out of order."""
    data = bc.simulate.crowd(
        n_tasks,
        n_workers,
        n_classes,
        labels_per_task=labels_per_task,
        accuracy=accuracy,
        seed=seed,
    )
    frame = data.annotations.to_frame()
    frame["task"] = [f"task-{task:03d}" for task in frame["task"]]
    frame["worker"] = [f"worker-{worker:02d}" for worker in frame["worker"]]
    frame["label"] = [("cat", "dog", "hen", "owl")[label] for label in frame["label"]]
    return frame.sample(frac=1, random_state=seed).reset_index(drop=True)


def assert_same_fit(one, other, *, atol=0.0):
    """All fitted attributes agree; labels wherever the first place is not a matter of rounding."""
    for name in ("probas_", "confusions_"):
        pd.testing.assert_frame_equal(
            getattr(one, name), getattr(other, name), rtol=0, atol=atol, check_exact=atol == 0
        )
    np.testing.assert_allclose(one.priors_, other.priors_, rtol=0, atol=atol)
    assert one.log_likelihood_ == pytest.approx(other.log_likelihood_, rel=atol, abs=0)
    pd.testing.assert_frame_equal(
        one.worker_quality_, other.worker_quality_, rtol=0, atol=max(atol, 1e-300)
    )
    ranked = np.sort(one.probas_.to_numpy(), axis=1)
    clear = ranked[:, -1] - ranked[:, -2] > 2 * max(atol, 1e-9)
    pd.testing.assert_series_equal(one.labels_[clear], other.labels_[clear])


def test_all_aggregators_are_found():
    names = {aggregator.__name__ for aggregator in AGGREGATORS}
    assert {"MajorityVote", "Wawa", "DawidSkene", "OneCoinDawidSkene"} <= names


# Parameters.


@every_aggregator
def test_parameters_follow_scikit_learn(aggregator):
    model = make(aggregator, seed=5)
    parameters = model.get_params()
    assert set(parameters) == set(inspect.signature(aggregator).parameters)
    assert parameters["seed"] == 5
    twin = clone(model)
    assert twin is not model
    assert twin.get_params() == parameters
    assert twin.set_params(seed=6) is twin
    assert (twin.seed, model.seed) == (6, 5)
    assert aggregator.__name__ in repr(model)


@every_aggregator
def test_fit_changes_no_parameter_and_returns_itself(aggregator):
    model = make(aggregator)
    before = dict(model.get_params())
    assert model.fit(crowd_frame()) is model
    assert model.get_params() == before


@every_aggregator
def test_refit_forgets_the_first_fit(aggregator):
    first, second = crowd_frame(1), crowd_frame(2, n_tasks=30, n_workers=6)
    model = make(aggregator).fit(first, gold={"task-000": "cat"})
    assert_same_fit(model.fit(second), make(aggregator).fit(second))


@every_aggregator
def test_unfitted_cannot_predict(aggregator):
    for method in (make(aggregator).predict, make(aggregator).predict_proba):
        with pytest.raises(NotFittedError):
            method(crowd_frame())


@every_aggregator
def test_a_fitted_aggregator_survives_pickling(aggregator):
    frame = crowd_frame()
    model = make(aggregator).fit(frame)
    copy = pickle.loads(pickle.dumps(model))
    assert_same_fit(model, copy)
    pd.testing.assert_frame_equal(model.predict_proba(frame), copy.predict_proba(frame))


# Results.


@every_aggregator
@pytest.mark.parametrize("n_classes", [2, 3])
def test_results_are_distributions_under_the_users_ids(aggregator, n_classes):
    frame = crowd_frame(n_classes=n_classes)
    ann = bc.Annotations.from_frame(frame)
    model = make(aggregator).fit(frame)

    assert list(model.probas_.index) == sorted(set(frame["task"])) == list(ann.tasks)
    assert list(model.probas_.columns) == sorted(set(frame["label"])) == list(ann.classes)
    assert ((model.probas_ >= 0) & (model.probas_ <= 1)).all(axis=None)
    np.testing.assert_allclose(model.probas_.sum(axis=1), 1, rtol=1e-9)

    assert model.labels_.index.equals(model.probas_.index)
    chosen = [model.probas_.loc[task, label] for task, label in model.labels_.items()]
    np.testing.assert_allclose(chosen, model.probas_.max(axis=1), rtol=0, atol=1e-8)
    assert 0 <= model.n_ties_ <= len(model.labels_)

    assert list(model.priors_.index) == list(ann.classes)
    assert model.priors_.sum() == pytest.approx(1)

    pairs = [(worker, true) for worker in ann.workers for true in ann.classes]
    assert list(model.confusions_.index) == pairs
    assert model.confusions_.index.names == ["worker", "true"]
    assert list(model.confusions_.columns) == list(ann.classes)
    assert (model.confusions_ >= 0).all(axis=None)
    np.testing.assert_allclose(model.confusions_.sum(axis=1), 1, rtol=1e-9)

    assert np.isfinite(model.log_likelihood_)
    assert model.log_likelihood_ < 0
    assert len(model.trace_) == model.n_iter_
    assert isinstance(model.converged_, bool)


@every_aggregator
def test_worker_quality_describes_every_worker(aggregator):
    frame = crowd_frame()
    quality = make(aggregator).fit(frame).worker_quality_
    ends = [name for name in ("lower", "upper") if name in quality]
    assert list(quality.columns) == ["accuracy", *ends, "information", "n_labels", "flag"]
    assert ends == (["lower", "upper"] if aggregator is bc.AutoAggregator else [])
    assert list(quality.index) == sorted(set(frame["worker"]))
    assert quality["n_labels"].to_dict() == frame["worker"].value_counts().to_dict()
    assert quality["accuracy"].between(0, 1).all()
    # No label tells more about a truth of three classes than log 3 nats.
    assert quality["information"].between(0, np.log(3) + 1e-12).all()
    assert set(quality["flag"]) <= {"", "spammer", "adversary"}


@every_aggregator
def test_labels_of_a_decent_crowd_are_right(aggregator):
    data = bc.simulate.one_coin_crowd(150, 15, 2, accuracy=0.8, seed=1)
    labels = make(aggregator).fit_predict(data.annotations)
    # The majority of fifteen such labels errs once in a hundred tasks, a constant in half of them.
    assert (labels == data.truth).mean() > 0.95


@every_aggregator
def test_ways_to_predict_agree(aggregator):
    frame = crowd_frame(3)
    gold = {"task-000": "dog"}
    model = make(aggregator).fit(frame, gold)
    pd.testing.assert_series_equal(make(aggregator).fit_predict(frame, gold), model.labels_)
    pd.testing.assert_frame_equal(make(aggregator).fit_predict_proba(frame, gold), model.probas_)


@every_aggregator
def test_same_seed_same_answer(aggregator):
    frame = crowd_frame(4, labels_per_task=2)  # with ties
    one, other = (make(aggregator, seed=11).fit(frame) for _ in range(2))
    assert_same_fit(one, other)
    pd.testing.assert_series_equal(one.labels_, other.labels_)
    np.testing.assert_array_equal(one.trace_, other.trace_)


# Known labels.


@every_aggregator
def test_gold_is_respected_exactly(aggregator):
    frame = crowd_frame(5)
    gold = pd.Series({"task-003": "hen", "task-017": "cat", "task-030": "dog"})
    before = gold.copy()
    model = make(aggregator).fit(frame, gold)
    assert model.labels_[gold.index].to_list() == gold.to_list()
    np.testing.assert_array_equal(model.probas_.loc[gold.index], np.eye(3)[[2, 0, 1]])
    pd.testing.assert_series_equal(gold, before)
    assert_same_fit(model, make(aggregator).fit(frame, gold.to_dict()))


@every_aggregator
def test_gold_of_an_unknown_task_or_class_is_counted_and_reported(aggregator):
    gold = {"task-003": "hen", "elsewhere": "cat", "task-000": "fox"}
    with pytest.warns(TruthWarning) as caught:
        model = make(aggregator).fit(crowd_frame(), gold)
    said = [str(warning.message).partition(";")[0] for warning in caught]
    assert said[0] == "1 of 3 gold tasks has no labels and is left out (such as 'elsewhere')"
    if "fox" in model.classes_:  # the default makes a class of it
        assert model.labels_["task-000"] == "fox"
        return
    assert said[1] == "nobody chose the class 'fox' of the gold: 1 of 3 gold tasks is left out"
    assert_same_fit(model, make(aggregator).fit(crowd_frame(), {"task-003": "hen"}))


# The form of the input.


@every_aggregator
def test_input_is_not_changed(aggregator):
    frame = crowd_frame(6)
    before = frame.copy(deep=True)
    make(aggregator).fit(frame).predict_proba(frame)
    pd.testing.assert_frame_equal(frame, before)
    ann = bc.Annotations.from_frame(frame)
    copies = [ann.task_codes.copy(), ann.worker_codes.copy(), ann.label_codes.copy()]
    make(aggregator).fit(ann).predict_proba(ann)
    for codes, copy in zip(
        (ann.task_codes, ann.worker_codes, ann.label_codes), copies, strict=True
    ):
        np.testing.assert_array_equal(codes, copy)


@every_aggregator
@pytest.mark.parametrize(
    "convert", [pl.from_pandas, pa.Table.from_pandas, bc.Annotations.from_frame]
)
def test_every_kind_of_table_gives_the_same(aggregator, convert):
    frame = crowd_frame(7)
    model, other = make(aggregator).fit(frame), make(aggregator).fit(convert(frame))
    assert_same_fit(model, other)
    pd.testing.assert_frame_equal(
        model.predict_proba(frame), other.predict_proba(convert(frame)), check_exact=True
    )


crowds = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**31 - 1),
        "n_tasks": st.integers(15, 40),
        "n_workers": st.integers(5, 9),
        "labels_per_task": st.integers(3, 5),
        "n_classes": st.integers(2, 4),
    }
)


@every_aggregator
@settings(max_examples=5)
@given(crowd=crowds, order=st.integers(0, 2**31 - 1))
def test_order_of_rows_changes_nothing(aggregator, crowd, order):
    frame = crowd_frame(**crowd)
    shuffled = frame.sample(frac=1, random_state=order)
    one, other = make(aggregator).fit(frame), make(aggregator).fit(shuffled)
    assert_same_fit(one, other)
    pd.testing.assert_series_equal(one.labels_, other.labels_)


@every_aggregator
@settings(max_examples=5)
@given(crowd=crowds, reverse=st.booleans())
def test_names_of_workers_change_nothing(aggregator, crowd, reverse):
    reverse = reverse and aggregator.__name__ not in STARTS_BY_WORKER
    frame = crowd_frame(**crowd)
    workers = sorted(set(frame["worker"]), reverse=reverse)
    names = {worker: f"{rank:02d}-{worker}" for rank, worker in enumerate(workers)}
    renamed = frame.assign(worker=frame["worker"].map(names))
    one, other = make(aggregator).fit(frame), make(aggregator).fit(renamed)
    back = {name: worker for worker, name in names.items()}
    other.worker_quality_ = other.worker_quality_.rename(index=back).loc[sorted(workers)]
    other.confusions_ = other.confusions_.rename(index=back, level=0).loc[sorted(workers)]
    # Sums in another order round differently, and iterations carry that on: 1e-16 times the
    # iterations times what one of them magnifies, far below 1e-6.
    assert_same_fit(one, other, atol=1e-6 if reverse else 0.0)


@every_aggregator
def test_labels_may_be_text_numbers_or_truth_values(aggregator):
    frame = crowd_frame(8, n_classes=2)
    fits = {}
    for cat, dog in (("cat", "dog"), (0, 1), (False, True), (-7, 10_000)):
        recoded = frame.assign(label=[cat if x == "cat" else dog for x in frame["label"]])
        model = make(aggregator).fit(recoded, gold={"task-000": dog})
        assert list(model.classes_) == [cat, dog]
        assert list(model.probas_.columns) == [cat, dog]
        assert set(model.labels_) <= {cat, dog}
        assert model.labels_["task-000"] == dog
        assert list(model.predict_proba(recoded).columns) == [cat, dog]
        fits[dog] = model
    for model in fits.values():
        np.testing.assert_array_equal(model.probas_, fits["dog"].probas_)
        np.testing.assert_array_equal(model.confusions_, fits["dog"].confusions_)


@every_aggregator
def test_missing_labels_are_absent_labels(aggregator):
    frame = crowd_frame(9)
    holes = frame.copy()
    holes.loc[::5, "label"] = None
    absent = frame.drop(index=frame.index[::5])
    for column in ("task", "worker"):  # nobody and nothing drops out
        assert set(absent[column]) == set(frame[column])
    assert_same_fit(make(aggregator).fit(holes), make(aggregator).fit(absent))


@every_aggregator
def test_tasks_and_workers_without_labels(aggregator):
    ann = bc.Annotations.from_frame(crowd_frame(10))
    larger = bc.Annotations.from_codes(
        ann.task_codes,
        ann.worker_codes,
        ann.label_codes,
        tasks=[*ann.tasks, "task-unseen"],
        workers=[*ann.workers, "worker-silent"],
        classes=ann.classes,
    )
    model = make(aggregator).fit(larger)
    assert np.isfinite(model.probas_).all(axis=None)
    np.testing.assert_allclose(model.probas_.sum(axis=1), 1, rtol=1e-9)
    np.testing.assert_allclose(model.confusions_.sum(axis=1), 1, rtol=1e-9)
    silent = model.worker_quality_.loc["worker-silent"]
    assert (silent["n_labels"], silent["flag"]) == (0, "")
    # Whoever says nothing is taken for one of the crowd.
    others = model.worker_quality_["accuracy"].drop("worker-silent")
    assert others.min() <= silent["accuracy"] <= others.max()


# Prediction.


@every_aggregator
def test_prediction_for_new_tasks(aggregator):
    frame = crowd_frame(11)
    model = make(aggregator).fit(frame)
    new = crowd_frame(11, n_tasks=20).assign(task=lambda f: "new-" + f["task"])
    new.loc[::4, "worker"] = "stranger"
    probas = model.predict_proba(new)
    assert list(probas.index) == sorted(set(new["task"]))
    assert list(probas.columns) == ["cat", "dog", "hen"]
    assert ((probas >= 0) & (probas <= 1)).all(axis=None)
    np.testing.assert_allclose(probas.sum(axis=1), 1, rtol=1e-9)
    pd.testing.assert_frame_equal(model.predict_proba(bc.Annotations.from_frame(new)), probas)
    labels = model.predict(new)
    chosen = [probas.loc[task, label] for task, label in labels.items()]
    np.testing.assert_allclose(chosen, probas.max(axis=1), rtol=0, atol=1e-8)


@every_aggregator
def test_prediction_may_lack_a_class_and_may_not_bring_one(aggregator):
    model = make(aggregator).fit(crowd_frame(12))
    new = pd.DataFrame({"task": [1, 1], "worker": ["worker-00", "worker-01"], "label": "cat"})
    assert list(model.predict_proba(new).columns) == ["cat", "dog", "hen"]
    with pytest.raises(ValueError, match="'fox' is not one of the"):
        model.predict_proba(new.assign(label=["cat", "fox"]))


# Flags.


def flags_of(right, n_per_class):
    """Flag of a worker who labelled so many tasks of each of two classes, so many rightly."""
    counts = np.array([[[right, n_per_class - right], [n_per_class - right, right]]], dtype=float)
    matrices = counts / n_per_class
    quality = worker_quality(
        DenseRows(matrices, matrices[0]),
        Tally(np.einsum("wkk->wk", counts), counts.sum(axis=2)),
        np.array([0.5, 0.5]),
        np.array([2 * n_per_class]),
        pd.Index([0]),
    )
    return quality["flag"].item()


def test_flags_by_hand():
    # Half right: informedness 0, with a standard deviation of sqrt(2 * .25 / (n + 3)), which
    # three times over is .29 for n = 50 and .21 for n = 100, on either side of .25.
    assert flags_of(25, 50) == ""
    assert flags_of(50, 100) == "spammer"
    # 5 of 50: a mean of 6/52, informedness -.77, standard deviation .062.
    assert flags_of(5, 50) == "adversary"
    assert flags_of(48, 50) == ""
    # Both of two labels wrong: informedness -1/3, standard deviation 1/3.
    assert flags_of(0, 1) == ""


def planted_crowd():
    """Eight honest workers, a spammer, an adversary, and one with two labels, both wrong."""
    honest = np.array([[0.8, 0.2], [0.2, 0.8]])
    kinds = {"spammer": np.full((2, 2), 0.5), "adversary": 1 - honest}
    confusions = np.stack([honest] * 8 + list(kinds.values()))
    data = bc.simulate.full_confusion_crowd(400, 10, 2, confusions=confusions, seed=0)
    frame = data.annotations.to_frame()
    names = [*(f"honest-{w}" for w in range(8)), *kinds]
    frame["worker"] = [names[w] for w in frame["worker"]]
    tasks = [int(data.truth.index[data.truth == cls][0]) for cls in (0, 1)]
    unlucky = pd.DataFrame({"task": tasks, "worker": "unlucky", "label": [1, 0]})
    return pd.concat([frame, unlucky], ignore_index=True)


def test_dawid_skene_flags_those_and_only_those():
    flags = bc.DawidSkene().fit(planted_crowd()).worker_quality_["flag"]
    assert flags[flags != ""].to_dict() == {"spammer": "spammer", "adversary": "adversary"}


def test_an_adversary_is_informative_and_a_spammer_is_not():
    quality = bc.DawidSkene().fit(planted_crowd()).worker_quality_
    # 400 labels of a coin have a mutual information of 1 / (2 * 400) nats on average.
    assert quality.loc["spammer", "information"] < 0.01
    # log 2 less the entropy of 0.8.
    expected = np.log(2) + 0.8 * np.log(0.8) + 0.2 * np.log(0.2)
    assert quality.loc["adversary", "information"] == pytest.approx(expected, abs=0.08)
    assert quality.loc["adversary", "accuracy"] == pytest.approx(0.2, abs=0.06)


@every_aggregator
def test_two_labels_are_no_ground_for_an_accusation(aggregator):
    quality = make(aggregator).fit(planted_crowd()).worker_quality_
    assert quality.loc["unlucky", "n_labels"] == 2
    assert quality.loc["unlucky", "flag"] == ""
    assert not quality["flag"].filter(like="honest").any()
