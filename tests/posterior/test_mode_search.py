"""Weights are given to modes whose chains are at rest, and to no others."""

import jax
import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.models import one_coin
from bayescrowd.posterior.chains import Recording
from bayescrowd.posterior.container import assemble, dataset_of
from bayescrowd.posterior.convergence import Verdict
from bayescrowd.posterior.crowd_adapter import crowd_problem
from bayescrowd.posterior.mode_search import ModeSearch, _sources, extension_of
from bayescrowd.posterior.modes import Modes

N_TASKS, N_DRAWS = 30, 800


@pytest.fixture(scope="module")
def camps():
    """Two camps of three workers who contradict each other on every task, and their truths.

    Either camp may be right. Exchanging the camps and the classes turns one mode into the other, so
    that each holds exactly half of the posterior.
    """
    truth = np.arange(N_TASKS) % 2
    answers = np.stack([truth] * 3 + [1 - truth] * 3, axis=1)
    return bc.Annotations.from_matrix(answers), truth


def recording_of(camps, *, creeps):
    """Two chains in each mode, of exact draws given the classes; or of the same ones in order."""
    ann, truth = camps
    rng = np.random.default_rng(0)
    prior = one_coin.Prior()
    accuracy, label_mean = [], []
    for right in (truth, truth, 1 - truth, 1 - truth):
        n_right = (ann.label_codes == right[ann.task_codes]).reshape(N_TASKS, 6).sum(axis=0)
        alpha = prior.n_pseudo_labels * prior.accuracy
        beta = prior.n_pseudo_labels - alpha
        drawn = rng.beta(alpha + n_right, beta + N_TASKS - n_right, (N_DRAWS, 6))
        accuracy.append(np.sort(drawn, axis=0) if creeps else drawn)
        label_mean.append(np.eye(2)[right])
    halves = prior.prevalence + N_TASKS / 2
    prevalence = rng.dirichlet([halves, halves], (4, N_DRAWS))
    params = {"accuracy": np.array(accuracy), "prevalence": prevalence}
    return Recording(
        params={name: values.astype(np.float32) for name, values in params.items()},
        statistics={"log_likelihood": rng.normal(size=(4, N_DRAWS))},
        log_likelihood=None,
        agreement=np.ones((4, N_DRAWS, 2, 2)),
        label_mean=np.array(label_mean),
        is_complete=True,
        verdict=Verdict.APART,
    )


def found_by_search(camps, recording):
    problem = crowd_problem(one_coin, camps[0], one_coin.Prior())
    return ModeSearch(problem, jax.random.key(0)).modes(recording)


def container_of(camps, recording, modes):
    coords = {"task": camps[0].tasks, "cls": camps[0].classes, "worker": camps[0].workers}
    params = {
        "accuracy": (("chain", "draw", "worker"), recording.params["accuracy"]),
        "prevalence": (("chain", "draw", "cls"), recording.params["prevalence"]),
    }
    probability = {"probability": (("chain", "task", "cls"), recording.label_mean)}
    groups = {
        "posterior": dataset_of(params, coords=coords),
        "label_posterior": dataset_of(probability, coords=coords),
    }
    return assemble(groups if modes is None else groups | {"modes": modes})


def test_modes_whose_chains_are_at_rest_have_weights(camps):
    recording = recording_of(camps, creeps=False)
    modes = found_by_search(camps, recording)
    assert modes["mode_of_chain"].to_numpy().tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    # Exactly half each; the logs of the two evidences have independent errors.
    gap = np.diff(modes["log_evidence"].to_numpy())[0]
    error = np.linalg.norm(modes["log_evidence_error"].to_numpy())
    assert error < 0.2
    assert abs(gap) < 4 * error
    verdict = bc.diagnose(container_of(camps, recording, modes)).verdict
    assert "has 2 modes that chains hardly leave" in verdict
    assert "have not settled" not in verdict


def test_chains_that_creep_have_no_weights(camps):
    # The same draws in another order: they only look different while one waits.
    recording = recording_of(camps, creeps=True)
    assert found_by_search(camps, recording) is None
    post = container_of(camps, recording, None)
    verdict = bc.diagnose(post).verdict
    assert "modes that chains hardly leave" not in verdict
    assert (
        "chains have not settled, they still move mostly between '0' and '1' "
        "(30 of 30 tasks differ between chains 0 and 2); no weights of modes can be given"
    ) in verdict
    # All chains then count alike.
    np.testing.assert_allclose(bc.label_posterior(post), 0.5)


def test_weights_that_are_not_known_are_not_given(camps, monkeypatch):
    recording = recording_of(camps, creeps=False)
    monkeypatch.setattr("bayescrowd.posterior.modes.MOST_ERROR", 1e-3)
    assert found_by_search(camps, recording) is None


@pytest.mark.parametrize("creeps", [False, True])
def test_chains_that_creep_are_not_compared(camps, creeps, monkeypatch):
    compared = []

    def leave_all(found, at_rest):
        compared.append((found, at_rest))
        return np.array([2, 3, 2, 3])

    monkeypatch.setattr("bayescrowd.posterior.mode_search._sources", leave_all)
    problem = crowd_problem(one_coin, camps[0], one_coin.Prior())
    search = ModeSearch(problem, jax.random.key(0))
    search.aim(recording_of(camps, creeps=creeps))
    assert len(compared) == len(search._left) == (0 if creeps else 1)
    assert all(at_rest.all() for _, at_rest in compared)


def test_sampling_gives_up_by_the_work_of_its_sweeps(camps):
    def limit(model, **options):
        problem = crowd_problem(model, camps[0], model.Prior())
        options = {"chains": 4, "draws": 1000, "most_draws": None} | options
        return extension_of(jax.random.key(0), problem, "gibbs", **options)[0]

    models = (bc.models.one_coin, bc.models.hierarchical_dawid_skene)
    simple, pooled = (limit(model).most_draws for model in models)
    # 180 labels and 5,000 for the sweep; 8 parameters, or 32 and a factor of 2.5
    assert simple == 2_000_000_000 // 5260
    assert pooled == 2_000_000_000 // (2.5 * 5500)
    assert limit(one_coin, most_draws=2000).most_draws == 2000
    assert limit(one_coin, draws=100) is None
    assert limit(one_coin, chains=1) is None


def found_modes(log_evidence):
    heights = np.array(log_evidence)
    return Modes(np.arange(len(heights)), np.exp(heights - heights[0]), heights, 0.1 + 0 * heights)


def test_chains_leave_modes_that_hold_nothing():
    source = _sources(found_modes([-100.0, -101.0, -120.0]), np.array([True, True, True]))
    assert source[:2].tolist() == [0, 1]
    assert source[2] in (0, 1)


def test_chains_that_still_move_stay_and_are_not_joined():
    found = found_modes([-100.0, -120.0, -140.0])
    assert _sources(found, np.array([True, False, True])).tolist() == [0, 1, 0]
    # Where the heaviest one still moves, it is not known whether it is the heaviest.
    assert _sources(found, np.array([False, True, True])).tolist() == [0, 1, 1]
