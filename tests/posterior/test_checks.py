"""Predictive checks: statistics by hand, and misfits that have to be found."""

import numpy as np
import pandas as pd

from bayescrowd.posterior.checks import check_crowd
from bayescrowd.posterior.container import assemble, dataset_of


def container(observed, simulated, n_classes=2):
    """Judgements of every worker on every task: observed [task, worker], simulated [draw, ...]."""
    n_tasks, n_workers = np.shape(observed)
    task, worker = np.divmod(np.arange(n_tasks * n_workers), n_workers)
    coords = {"worker": [f"w{k}" for k in range(n_workers)], "cls": list("abc")[:n_classes]}
    probability = (("chain", "task", "cls"), np.zeros((1, n_tasks, n_classes)))
    flat = np.reshape(simulated, (1, len(simulated), -1))
    groups = {
        "posterior": {"skill": (("chain", "draw", "worker"), np.zeros((1, 1, n_workers)))},
        "label_posterior": {"probability": probability},
        "constant_data": {
            "task_code": (("judgement",), task),
            "worker_code": (("judgement",), worker),
        },
        "observed_data": {"label": (("judgement",), np.ravel(observed))},
        "posterior_predictive": {"label": (("chain", "draw", "judgement"), flat)},
    }
    return assemble({name: dataset_of(group, coords=coords) for name, group in groups.items()})


def test_statistics_by_hand():
    observed = [[0, 0, 1], [1, 1, 1], [0, 1, 1], [0, 0, 0]]
    checks = check_crowd(container(observed, [observed, np.zeros((4, 3), int)]))
    pairs = [("w0", "w1"), ("w0", "w2"), ("w1", "w2")]
    assert checks.agreement.index.to_list() == pairs
    assert checks.agreement["observed"].to_list() == [0.75, 0.5, 0.75]
    assert checks.agreement["n_tasks"].to_list() == [4, 4, 4]
    # two draws: one the same, one with full agreement
    assert checks.agreement["p_value"].to_list() == [0.75, 0.75, 0.75]
    divided = -(np.log(1 / 3) / 3 + 2 * np.log(2 / 3) / 3)
    entropy = np.array([divided, 0, divided, 0])
    expected = [entropy.mean(), entropy.std(), 0.5]
    np.testing.assert_allclose(checks.vote_entropy["observed"], expected)
    assert checks.label_frequency["observed"].loc[("w0", "a")] == 0.75
    assert checks.label_frequency["mean"].loc[("w0", "a")] == (0.75 + 1) / 2


def test_a_good_model_is_not_accused(post):
    checks = check_crowd(post)
    p_values = pd.concat([checks.vote_entropy["p_value"], checks.label_frequency["p_value"]])
    assert checks.agreement["n_tasks"].min() >= 1
    # about 2 % of the p-values of a true model lie outside; 24 of them are looked at
    assert p_values.between(0.01, 0.99).mean() > 0.85


def test_workers_who_copy_are_found():
    rng = np.random.default_rng(0)
    simulated = rng.integers(0, 2, size=(100, 60, 3))
    observed = rng.integers(0, 2, size=(60, 3))
    observed[:, 1] = observed[:, 0]
    checks = check_crowd(container(observed, simulated))
    assert checks.agreement["p_value"].loc[("w0", "w1")] == 0.0
    assert 0.01 < checks.agreement["p_value"].loc[("w0", "w2")] < 0.99


def test_single_judgements_have_nothing_to_agree_on():
    checks = check_crowd(container(np.zeros((3, 1), int), np.zeros((5, 3, 1), int)))
    assert len(checks.agreement) == 0
    assert checks.vote_entropy["observed"].isna().all()
