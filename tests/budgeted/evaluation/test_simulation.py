"""The simulated crowd: noise rates, instances used once, and tables that do not fit."""

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.budgeted.evaluation.table_crowd import TableCrowd, noisy_labels
from bayescrowd.budgeted.space import FeatureSpace


def test_noise_rates_and_kinds():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 3, (4_000, 1))
    for noise, rate in (("uniform", 0.3), ("biased", 0.3)):
        labels = noisy_labels(rng, values, (3,), n_labels=5, noise=noise, rate=rate)
        shift = (labels - values[:, :, None]) % 3
        shares = np.bincount(shift.ravel(), minlength=3) / shift.size
        expected = [0.7, 0.15, 0.15] if noise == "uniform" else [0.7, 0.3, 0.0]
        # 20,000 labels: the standard error of a share is at most .0033
        np.testing.assert_allclose(shares, expected, atol=4 * 0.0033)
    clean = noisy_labels(rng, values, (3,), n_labels=2, noise="none", rate=0.9)
    assert (clean == values[:, :, None]).all()


def test_missing_cells_have_no_labels():
    labels = noisy_labels(
        np.random.default_rng(0), np.array([[-1], [1]]), (2,), n_labels=3, noise="uniform", rate=1.0
    )
    assert labels.tolist() == [[[-1, -1, -1]], [[0, 0, 0]]]


def test_each_instance_is_labelled_once_and_then_none_is_left():
    space = FeatureSpace(classes=["a", "b"], features={"x": list(range(6))})
    labels = np.arange(6)[:, None, None]
    labels[4] = -1  # missing
    crowd = TableCrowd(space, np.array([0, 0, 1, 1, 1, 1]), labels, np.random.default_rng(0))
    first = [crowd.answer("x", "b", 1) for _ in range(4)]
    assert sorted(answer[0] for answer in first[:3]) == [2, 3, 5]
    assert first[3] is None
    crowd.restart()
    assert [crowd.answer("x", "b", 1) for _ in range(4)] == first


@pytest.mark.parametrize("batch", [1, 7])
def test_a_whole_run(birds, batch):
    space = FeatureSpace.from_table(birds, target="kind")
    policy = bc.BudgetedSelection(space, 120, 1, seed=1)
    result = bc.simulate_budget(policy, birds, target="kind", batch=batch)
    assert result.selected == ("beak",)
    assert result.spent == 120
    accuracy = (result.classifier.predict(birds) == birds["kind"]).mean()
    assert accuracy > 0.85  # beak alone is right nine times in ten


def test_the_crowds_seed_changes_the_answers_only(birds):
    space = FeatureSpace.from_table(birds, target="kind")
    runs = [
        bc.simulate_budget(bc.RoundRobin(space, 20, 1), birds, target="kind", seed=seed).history
        for seed in (0, 0, 1)
    ]
    pd.testing.assert_frame_equal(runs[0], runs[1])
    assert runs[0]["feature"].equals(runs[2]["feature"])
    assert not runs[0]["answers"].equals(runs[2]["answers"])


def test_a_small_table_runs_out(birds):
    few = birds.groupby("kind").head(3)
    space = FeatureSpace.from_table(birds, target="kind")
    result = bc.simulate_budget(bc.RoundRobin(space, 500, 2), few, target="kind")
    assert result.stopped == "nothing left to ask"
    assert result.spent == 4 * 9


BAD = [
    (lambda t: t[t["kind"] != "owl"], {}, "class 'owl' has no instance"),
    (lambda t: t.assign(kind="emu"), {}, "column 'kind': 'emu' is not one of"),
    (lambda t: t.drop(columns="wing"), {}, "no column 'wing'"),
    (lambda t: t, {"rate": 1.5, "noise": "uniform"}, "rate=1.5"),
    (lambda t: t, {"batch": 0}, "batch=0"),
]


@pytest.mark.parametrize(("change", "options", "message"), BAD, ids=[m for *_, m in BAD])
def test_what_does_not_fit_is_refused_before_anything_is_asked(birds, change, options, message):
    policy = bc.RoundRobin(FeatureSpace.from_table(birds, target="kind"), 20, 2)
    with pytest.raises(ValueError, match=message):
        bc.simulate_budget(policy, change(birds), target="kind", **options)
    assert policy.events == ()
