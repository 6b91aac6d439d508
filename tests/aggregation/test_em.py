"""The EM engine against a sweep on paper, loops in log space, and its own single-shard path."""

from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logsumexp

import bayescrowd as bc
from bayescrowd.aggregation import em
from bayescrowd.aggregation.em import EMEstimate, Incidence, Sweep, floored_log, maximise

# Two workers, symbols 2 * worker + label. Item 0: worker 0 says 0, worker 1 says 1. Item 1: worker
# 0 says 1. Item 2: nobody says anything.
PAPER = {
    "offsets": np.array([0, 2, 3, 3]),
    "symbols": np.array([0, 3, 1]),
    "n_symbols": 4,
    "n_classes": 2,
}
PAPER_ESTIMATE = EMEstimate(
    log_table=np.log([[0.8, 0.4], [0.2, 0.6], [0.5, 0.25], [0.5, 0.75]]),
    log_prior=np.log([0.75, 0.25]),
    penalty=0.0,
    parameters=None,
)


def random_labels(seed, *, n_items=30, n_workers=4, n_classes=3, mean_labels=4.0):
    """Offsets and symbols with repeated judgements, and no labels on the first and last items."""
    rng = np.random.default_rng(seed)
    # A geometric number of labels: some items have none, a few have very many.
    sizes = rng.geometric(1 / (1 + mean_labels), size=n_items) - 1
    sizes[[0, 1, -1]] = 0
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n_symbols = n_workers * n_classes
    return {
        "offsets": offsets,
        "symbols": rng.integers(n_symbols, size=offsets[-1]),
        "n_symbols": n_symbols,
        "n_classes": n_classes,
    }


def random_estimate(seed, *, n_workers=4, n_classes=3):
    rng = np.random.default_rng([seed, 1])
    confusions = rng.dirichlet(np.ones(n_classes), size=(n_workers, n_classes))
    table = confusions.transpose(0, 2, 1).reshape(-1, n_classes)
    return EMEstimate(np.log(table), np.log(rng.dirichlet(np.ones(n_classes))), 0.0, None)


def reference_sweep(labels, estimate, fixed=None):
    """Posterior and sweep, label by label."""
    offsets, symbols = labels["offsets"], labels["symbols"]
    n_items, n_classes = len(offsets) - 1, labels["n_classes"]
    posterior = np.zeros((n_items, n_classes))
    counts = np.zeros((labels["n_symbols"], n_classes))
    log_likelihood = 0.0
    for item in range(n_items):
        shown = symbols[offsets[item] : offsets[item + 1]]
        scores = np.array(estimate.log_prior)
        for symbol in shown:
            scores = scores + estimate.log_table[symbol]
        if fixed is not None and fixed[item] >= 0:
            scores[np.arange(n_classes) != fixed[item]] = -np.inf
        log_likelihood += logsumexp(scores)
        posterior[item] = np.exp(scores - logsumexp(scores))
        for symbol in shown:
            counts[symbol] += posterior[item]
    return posterior, Sweep(counts, posterior.sum(axis=0), log_likelihood)


def run_sweep(labels, estimate, fixed=None):
    incidence = Incidence(**labels, fixed=fixed)
    posterior = np.full((incidence.n_items, incidence.n_classes), np.nan)
    return posterior, incidence.sweep(estimate, posterior)


# By hand.


def test_sweep_by_hand():
    posterior, sweep = run_sweep(PAPER, PAPER_ESTIMATE)
    # Item 0: .75 * .8 * .5 = .3 against .25 * .4 * .75 = .075. Item 1: .75 * .2 = .25 * .6 = .15.
    np.testing.assert_allclose(posterior, [[0.8, 0.2], [0.5, 0.5], [0.75, 0.25]], rtol=1e-12)
    np.testing.assert_allclose(
        sweep.counts, [[0.8, 0.2], [0.5, 0.5], [0, 0], [0.8, 0.2]], rtol=1e-12
    )
    np.testing.assert_allclose(sweep.class_counts, [2.05, 0.95], rtol=1e-12)
    assert sweep.log_likelihood == pytest.approx(log(0.375) + log(0.3), rel=1e-12)


def test_scores_by_hand():
    scores = Incidence(**PAPER).scores(PAPER_ESTIMATE)
    np.testing.assert_allclose(
        np.exp(scores), [[0.3, 0.075], [0.15, 0.15], [0.75, 0.25]], rtol=1e-12
    )


def test_known_items_by_hand():
    posterior, sweep = run_sweep(PAPER, PAPER_ESTIMATE, fixed=np.array([-1, 1, 0]))
    np.testing.assert_allclose(posterior, [[0.8, 0.2], [0, 1], [1, 0]], rtol=1e-12)
    # The known item counts P(labels, its class): .15 for item 1, .75 for item 2.
    assert sweep.log_likelihood == pytest.approx(log(0.375) + log(0.15) + log(0.75), rel=1e-12)
    assert (posterior[1:] == [[0, 1], [1, 0]]).all()  # exactly


def test_start_sets_known_items_and_leaves_the_given_posterior_alone():
    posterior = np.array([[0.6, 0.4], [0.7, 0.3], [0.5, 0.5]])
    before = posterior.copy()
    sweep = Incidence(**PAPER, fixed=np.array([-1, 1, -1])).start(posterior)
    np.testing.assert_allclose(sweep.counts, [[0.6, 0.4], [0, 1], [0, 0], [0.6, 0.4]])
    np.testing.assert_allclose(sweep.class_counts, [1.1, 1.9])
    assert np.isnan(sweep.log_likelihood)
    np.testing.assert_array_equal(posterior, before)


def test_log_floored_by_hand():
    np.testing.assert_array_equal(
        floored_log(np.array([0.0, 0.5, 1.0, 5e-324])), [em.LOG_FLOOR, log(0.5), 0, em.LOG_FLOOR]
    )


# Closed form.


def test_two_thousand_labels_do_not_underflow():
    n_right, n_labels = 1010, 2000
    assert 0.6**n_right * 0.4 ** (n_labels - n_right) == 0.0  # what a plain product would give
    labels = {
        "offsets": np.array([0, n_labels]),
        "symbols": np.repeat([0, 1], [n_right, n_labels - n_right]),
        "n_symbols": 2,
        "n_classes": 2,
    }
    estimate = EMEstimate(np.log([[0.6, 0.4], [0.4, 0.6]]), np.log([0.5, 0.5]), 0.0, None)
    posterior, sweep = run_sweep(labels, estimate)
    lead = 2 * n_right - n_labels
    # 2,000 roundings of a sum near 1,400: 2e3 * 2e-16 * 1.4e3, about 1e-9.
    assert posterior[0, 0] == pytest.approx(expit(lead * log(1.5)), rel=1e-8)
    right = n_right * log(0.6) + (n_labels - n_right) * log(0.4)
    wrong = n_right * log(0.4) + (n_labels - n_right) * log(0.6)
    assert sweep.log_likelihood == pytest.approx(log(0.5) + np.logaddexp(right, wrong), rel=1e-12)


def test_a_symbol_that_no_class_allows_is_no_evidence():
    table = np.log([[0.8, 0.4], [0.2, 0.6], [0.5, 0.25], [0.5, 0.75]])
    table[1] = floored_log(np.zeros(2))
    posterior, sweep = run_sweep(PAPER, PAPER_ESTIMATE._replace(log_table=table))
    np.testing.assert_allclose(posterior[1], [0.75, 0.25], rtol=1e-12)
    assert sweep.log_likelihood == pytest.approx(log(0.375) + em.LOG_FLOOR, rel=1e-12)


# Invariants.


def random_crowd(seed, n_tasks, n_workers, n_classes):
    """Labels without any structure, where EM has the least to hold on to."""
    rng = np.random.default_rng(seed)
    n_labels = int(rng.integers(1, 4 * n_tasks + 1))
    return bc.Annotations.from_codes(
        rng.integers(n_tasks, size=n_labels),
        rng.integers(n_workers, size=n_labels),
        rng.integers(n_classes, size=n_labels),
        tasks=n_tasks,
        workers=n_workers,
        classes=n_classes,
    )


@settings(max_examples=150)
@given(
    estimator=st.sampled_from([bc.DawidSkene, bc.OneCoinDawidSkene]),
    smoothing=st.sampled_from(["flat", "diagonal", "pooled"]),
    pseudo_counts=st.sampled_from([0.0, 0.01, 1.0, 30.0]),
    prior=st.sampled_from(["learned", "uniform"]),
    init=st.sampled_from(["majority", "random"]),
    n_known=st.integers(0, 2),
    sizes=st.tuples(st.integers(2, 15), st.integers(1, 5), st.integers(2, 4)),
    seed=st.integers(0, 2**32 - 1),
)
def test_objective_never_falls(
    estimator, smoothing, pseudo_counts, prior, init, n_known, sizes, seed
):
    ann = random_crowd(seed, *sizes)
    model = estimator(
        smoothing=smoothing,
        pseudo_counts=pseudo_counts,
        prior=prior,
        init=init,
        n_iter=40,
        tol=0.0,
        seed=seed % 1000,
    )
    trace = model.fit(ann, gold={task: task % ann.n_classes for task in range(n_known)}).trace_
    assert len(trace) == 40
    assert np.isfinite(trace).all()
    # A value is a sum of at most a few hundred terms, each rounded to 1e-16 of at most 690:
    # 1e-11 in all.
    assert np.diff(trace).min() >= -1e-10


def test_tolerance_zero_runs_every_iteration():
    ann = random_crowd(3, 20, 4, 3)
    model = bc.DawidSkene(n_iter=57, tol=0.0).fit(ann)
    assert (model.n_iter_, len(model.trace_), model.converged_) == (57, 57, False)


def test_stops_at_the_first_gain_below_the_tolerance():
    ann = random_crowd(3, 20, 4, 3)
    tol = 1e-4
    model = bc.DawidSkene(n_iter=500, tol=tol).fit(ann)
    gains = np.diff(model.trace_) / ann.n_labels
    assert model.converged_
    assert gains[-1] < tol
    assert (gains[:-1] >= tol).all()
    longer = bc.DawidSkene(n_iter=model.n_iter_, tol=0.0).fit(ann)
    np.testing.assert_array_equal(model.trace_, longer.trace_)


def test_maximise_starts_from_an_estimate_and_never_looks_at_the_posterior():
    labels = Incidence(**PAPER)
    seen = []

    def m_step(sweep, previous):
        seen.append((sweep, previous))
        return PAPER_ESTIMATE

    start = PAPER_ESTIMATE._replace(log_prior=np.log([0.5, 0.5]))
    nonsense = np.full((3, 2), np.nan)
    result = maximise(labels, nonsense, m_step, n_iter=2, tol=0.0, estimate=start)
    # Item 0 under even priors: .8 * .5 against .4 * .75.
    np.testing.assert_allclose(seen[0][0].counts[0], [4 / 7, 3 / 7], rtol=1e-12)
    assert [previous for _, previous in seen] == [start, PAPER_ESTIMATE]
    np.testing.assert_allclose(result.posterior[0], [0.8, 0.2], rtol=1e-12)


# Reference.


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("known", [False, True])
def test_sweep_equals_loops_in_log_space(seed, known):
    labels, estimate = random_labels(seed), random_estimate(seed)
    n_items = len(labels["offsets"]) - 1
    fixed = np.random.default_rng(seed).integers(-1, 3, size=n_items) if known else None
    posterior, sweep = run_sweep(labels, estimate, fixed)
    expected_posterior, expected = reference_sweep(labels, estimate, fixed)
    np.testing.assert_allclose(posterior, expected_posterior, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(sweep.counts, expected.counts, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(sweep.class_counts, expected.class_counts, rtol=1e-10)
    assert sweep.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-12)
    counts = Incidence(**labels, fixed=fixed).counts(posterior)
    np.testing.assert_allclose(counts, expected.counts, rtol=1e-10, atol=1e-14)


@pytest.fixture
def many_shards(monkeypatch):
    """Cuts what would be one shard of one block into many of many."""
    monkeypatch.setattr(em, "_SHARD_LABELS", 64)
    monkeypatch.setattr(em, "_BLOCK_ITEMS", 7)


@pytest.mark.parametrize("known", [False, True])
def test_shards_equal_one_shard_to_single_precision(many_shards, known):
    labels, estimate = random_labels(11, n_items=500, mean_labels=6.0), random_estimate(11)
    n_items, n_classes, n_labels = 500, labels["n_classes"], len(labels["symbols"])
    fixed = np.random.default_rng(11).integers(-1, 3, size=n_items) if known else None
    assert len(Incidence(**labels)._shards) > 8
    posterior, sweep = run_sweep(labels, estimate, fixed)
    expected_posterior, expected = reference_sweep(labels, estimate, fixed)
    # exp(-d) of a single-precision d is off by d exp(-d) u < u, with u = 6e-8 half a unit in the
    # last place; exp itself, the sum over classes and the division round once more each.
    unit = np.finfo(np.float32).eps / 2
    error = (n_classes + 4) * unit
    assert np.abs(posterior - expected_posterior).max() < error
    assert np.abs(sweep.counts - expected.counts).max() < error * n_labels
    assert np.abs(sweep.class_counts - expected.class_counts).max() < error * n_items
    assert abs(sweep.log_likelihood - expected.log_likelihood) < error * n_items
    assert np.abs(posterior - expected_posterior).max() > 0  # the path under test was taken
    np.testing.assert_allclose(
        Incidence(**labels).scores(estimate),
        [
            estimate.log_prior + estimate.log_table[labels["symbols"][a:b]].sum(axis=0)
            for a, b in zip(labels["offsets"], labels["offsets"][1:], strict=False)
        ],
        rtol=1e-12,
    )


@pytest.mark.parametrize("n_cores", [1, 2, 5])
def test_results_do_not_depend_on_the_number_of_cores(many_shards, monkeypatch, n_cores):
    ann = random_crowd(5, 400, 6, 3)
    expected = bc.DawidSkene(n_iter=20, tol=0.0).fit(ann)
    monkeypatch.setattr(em, "_usable_cores", lambda: n_cores)
    model = bc.DawidSkene(n_iter=20, tol=0.0).fit(ann)
    np.testing.assert_array_equal(model.probas_, expected.probas_)
    np.testing.assert_array_equal(model.confusions_, expected.confusions_)
    np.testing.assert_array_equal(model.trace_, expected.trace_)


def test_one_item_may_have_more_labels_than_a_shard(many_shards):
    rng = np.random.default_rng(2)
    labels = {
        "offsets": np.array([0, 0, 3, 1003, 1004, 1004]),
        "symbols": rng.integers(6, size=1004),
        "n_symbols": 6,
        "n_classes": 3,
    }
    estimate = random_estimate(2, n_workers=2)
    posterior, sweep = run_sweep(labels, estimate)
    expected_posterior, expected = reference_sweep(labels, estimate)
    np.testing.assert_allclose(posterior, expected_posterior, atol=1e-6)
    assert sweep.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-7)


def test_at_least_one_core_is_usable(monkeypatch):
    assert em._usable_cores() >= 1
    monkeypatch.delattr(em.os, "sched_getaffinity", raising=False)
    assert em._usable_cores() >= 1
