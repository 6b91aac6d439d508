"""Accuracies of workers: by hand for each kind of model, and of a real posterior."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import bayescrowd as bc
from bayescrowd.posterior import workers
from bayescrowd.posterior.container import assemble, dataset_of
from bayescrowd.posterior.workers import worker_accuracy, worker_posterior

DRAWS = ("chain", "draw")


def container(model, n_workers=2, codes=(0, 0, 1), **variables):
    """One chain of a model, of as many draws as the values have."""
    n_draws = len(next(iter(variables.values()))[1])
    variables = {"prevalence": (("cls",), [[0.5, 0.5]] * n_draws)} | variables
    named = {
        name: ((*DRAWS, *dims), np.asarray(values, float)[None])
        for name, (dims, values) in variables.items()
    }
    coords = {"worker": [f"w{k}" for k in range(n_workers)]}
    constant = dataset_of({"worker_code": (("judgement",), np.array(codes))})
    groups = {"posterior": dataset_of(named, coords=coords), "constant_data": constant}
    return assemble(groups, attrs={"model": model})


def test_confusion_matrices_by_hand():
    confusion = [[[[0.9, 0.1], [0.4, 0.6]], [[0.5, 0.5], [0.0, 1.0]]]]
    post = container(
        "dawid_skene",
        prevalence=(("cls",), [[0.25, 0.75]]),
        confusion=(("worker", "cls", "observed"), confusion),
    )
    found = worker_accuracy(post)
    assert found.dims == ("chain", "draw", "worker")
    np.testing.assert_allclose(found, [[[0.25 * 0.9 + 0.75 * 0.6, 0.25 * 0.5 + 0.75]]])


def test_one_coin_by_hand():
    post = container("one_coin", accuracy=(("worker",), [[0.7, 0.8], [0.9, 1.0]]))
    np.testing.assert_allclose(worker_accuracy(post), [[[0.7, 0.8], [0.9, 1.0]]])


def test_competence_by_hand():
    post = container(
        "mace",
        prevalence=(("cls",), [[0.2, 0.8]]),
        competence=(("worker",), [[0.6, 0.0]]),
        strategy=(("worker", "cls"), [[[0.5, 0.5], [1.0, 0.0]]]),
    )
    np.testing.assert_allclose(worker_accuracy(post), [[[0.6 + 0.4 * 0.5, 0.2]]])


@pytest.mark.parametrize("n_bytes", [1, 2**26])
def test_item_difficulty_by_hand(monkeypatch, n_bytes):
    monkeypatch.setattr(workers, "_BLOCK_BYTES", n_bytes)
    post = container(
        "item_difficulty",
        ability=(("worker",), [[0.0, 1.0], [2.0, -1.0]]),
        log_easiness=(("task",), [[0.0, np.log(2), 0.0], [0.0, 0.0, 0.0]]),
    )
    one, two = 1 / (1 + np.exp(-1)), 1 / (1 + np.exp(-2))
    np.testing.assert_allclose(
        worker_accuracy(post), [[[0.5, (2 * one + two) / 3], [two, 1 - one]]]
    )


def test_intervals_are_equal_tailed():
    values = np.linspace(0, 1, 101)[:, None]
    post = container("one_coin", n_workers=1, codes=(0, 0), accuracy=(("worker",), values))
    table = worker_posterior(post, probability=0.8)
    expected = pd.DataFrame(
        {"accuracy": [0.5], "lower": [0.1], "upper": [0.9], "n_labels": [2]}, index=["w0"]
    )
    pd.testing.assert_frame_equal(table, expected, check_names=False, check_dtype=False)


def test_a_real_posterior(post, awkward):
    ann, truth = awkward
    table = bc.worker_posterior(post)
    assert list(table.index) == list(ann.workers)
    assert table["n_labels"].tolist() == ann.labels_per_worker.tolist()
    # Eight workers of the prior's Dirichlet(4.8, 1.6, 1.6) rows: without labels the accuracy is a
    # mixture of three independent beta variables, whose mean is 0.6.
    unseen = table.iloc[7]
    single = stats.beta(4.8, 3.2)
    assert unseen["accuracy"] == pytest.approx(0.6, abs=0.03)
    assert single.ppf(0.055) < unseen["lower"] < 0.6 < unseen["upper"] < single.ppf(0.945)
    # The six others have about 32 labels each. If the classes were known, their rows would be the
    # prior's with the counts added; what is not known of the classes moves the mean by little.
    frame = ann.to_frame()
    true_class = pd.Series(truth, index=ann.tasks)[frame["task"]].to_numpy()
    is_right = (frame["label"] == true_class).groupby([frame["worker"], true_class])
    right, asked = (
        count.unstack(fill_value=0).reindex(columns=ann.classes, fill_value=0).iloc[:6]
        for count in (is_right.sum(), is_right.size())
    )
    n_items = pd.Series(truth).value_counts().reindex(ann.classes, fill_value=0)
    known = ((4.8 + right) / (8 + asked)) @ ((3 + n_items) / (3 + n_items).sum())
    six = table.loc[known.index]
    assert ((six["lower"] < known) & (known < six["upper"])).all()
    assert (six["accuracy"] - known).abs().max() < 0.5 * (six["upper"] - six["lower"]).min()
    assert (table["upper"] - table["lower"])[:6].max() < unseen["upper"] - unseen["lower"]


# Bad input


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("naive_bayes", "workers have no accuracy in the model naive_bayes"),
        ("probit", "the draws are of the model probit; expected one of ability_dawid_skene, "),
    ],
)
def test_models_without_accuracies_are_named(model, message):
    with pytest.raises(ValueError, match=message):
        worker_accuracy(container(model, rate=((), [0.5])))


@pytest.mark.parametrize("probability", [0.0, 1.0, 89.0])
def test_intervals_of_nothing_are_refused(probability):
    post = container("one_coin", n_workers=1, accuracy=(("worker",), [[0.5]]))
    with pytest.raises(ValueError, match="expected a number between 0 and 1"):
        worker_posterior(post, probability=probability)
