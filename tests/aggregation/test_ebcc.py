"""EBCC against a dense program of its own, its bound by definition, and published results."""

import numpy as np
import pytest
from scipy.special import digamma, gammaln
from scipy.stats import dirichlet, kstest
from sklearn.exceptions import ConvergenceWarning

import bayescrowd as bc
from bayescrowd.aggregation import ebcc_subtypes
from bayescrowd.aggregation.ebcc_subtypes import ebcc_posteriors
from bayescrowd.aggregation.votes import vote_shares
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs

ROWS = [
    *("aabca", "bbbcb", "cccca", "aaabb", "bcbcb", "cacca", "aaaba", "bbacb"),
    *("ccbcc", "abaca", "bbbab", "cccbc", "aaaca", "bbbba", "accaa", "bbcab"),
]
SMALL = bc.Annotations.from_matrix([list(row) for row in ROWS])
N_SUBTYPES = 4


def misled_crowd(seed, n_tasks=120, n_workers=8):
    """Two classes, two subtypes each: on one of them, most workers choose the other class."""
    rng = np.random.default_rng(seed)
    truth, subtype = rng.integers(2, size=n_tasks), rng.random(n_tasks) < 0.25
    accuracy = np.where(subtype[:, None], np.linspace(0.1, 0.9, n_workers), 0.85)
    right = rng.random((n_tasks, n_workers)) < accuracy
    return bc.Annotations.from_matrix(np.where(right, truth[:, None], 1 - truth[:, None]))


def starts_of(ann, fixed, n_starts, n_subtypes, seed=0):
    pairs = WorkerLabelPairs(ann, fixed)
    shares = vote_shares(ann, pairs.fixed)
    return ebcc_subtypes._random_starts(ann, pairs, shares, n_subtypes, np.arange(n_starts), seed)


def dense(ann, r, n_iter, fixed=None):
    """Variational Bayes from r[task, class, subtype], label by label; the bound of each iteration.

    The bound is E log p(labels, z, g, tau, pi, v) - E log q, term by term.
    """
    n_classes, n_subtypes = r.shape[1:]
    labels = list(zip(ann.task_codes, ann.worker_codes, ann.label_codes, strict=True))
    beta = np.where(np.eye(n_classes, dtype=bool), 4.0, 1.0)
    alpha, a = r.sum(axis=(0, 2)), np.full(n_subtypes, 0.1 / n_subtypes)
    bounds = []
    for _ in range(n_iter):
        eta, nu = a + r.sum(axis=0), alpha + r.sum(axis=(0, 2))
        mu = np.tile(beta[:, None], (ann.n_workers, 1, n_subtypes, 1))
        for t, w, label in labels:
            mu[w, :, :, label] += r[t]
        log_tau, log_pi, log_v = (
            digamma(x) - digamma(x.sum(-1, keepdims=True)) for x in (nu, eta, mu)
        )
        scores = np.tile(log_tau[:, None] + log_pi, (ann.n_tasks, 1, 1))
        for t, w, label in labels:
            scores[t] += log_v[w, :, :, label]
        for t in np.flatnonzero(fixed >= 0) if fixed is not None else ():
            scores[t, np.arange(n_classes) != fixed[t]] = -np.inf
        r = np.exp(scores - scores.max(axis=(1, 2), keepdims=True))
        r /= r.sum(axis=(1, 2), keepdims=True)
        possible = r > 0
        bound = (r[possible] * (scores[possible] - np.log(r[possible]))).sum()
        bound -= divergence(nu, alpha)
        bound -= sum(divergence(eta[k], a) for k in range(n_classes))
        for w in range(ann.n_workers):
            for k in range(n_classes):
                bound -= sum(divergence(mu[w, k, m], beta[k]) for m in range(n_subtypes))
        bounds.append(bound)
    return r, np.array(bounds)


def divergence(q, p):
    """KL(Dirichlet(q) || Dirichlet(p)): minus the entropy of q minus E_q log p."""
    log_x = digamma(q) - digamma(q.sum())
    log_density = gammaln(p.sum()) - gammaln(p).sum() + ((p - 1) * log_x).sum()
    return -dirichlet.entropy(q) - log_density


def prior_constants(ann, n_subtypes):
    """What the authors' program leaves out of the bound: constants of the priors."""
    n_classes = ann.n_classes
    alpha = vote_shares(ann, np.full(ann.n_tasks, -1)).sum(axis=0)
    of_subtypes = gammaln(0.1) - n_subtypes * gammaln(0.1 / n_subtypes)
    of_row = gammaln(3.0 + n_classes) - gammaln(4.0)
    return (
        gammaln(alpha.sum())
        - gammaln(alpha).sum()
        + n_classes * of_subtypes
        + ann.n_workers * n_classes * n_subtypes * of_row
    )


# Starts.


def test_starts_are_shares_times_uniform_draws():
    ann = bc.simulate.crowd(400, 20, 3, labels_per_task=6, seed=0).annotations
    fixed = np.full(400, -1)
    starts = starts_of(ann, fixed, 3, N_SUBTYPES)
    shares = vote_shares(ann, fixed)
    np.testing.assert_allclose(starts.sum(axis=2), np.repeat(shares[:, None], 3, axis=1))
    # A uniform Dirichlet's coordinate is a beta variable. Tasks are all different here, and a
    # right distribution has p < .001 once in a thousand times; the draws are always the same.
    has = shares > 0
    first = (starts[:, 0, 0] / np.where(has, shares, 1.0))[has]
    assert kstest(first, "beta", args=(1, N_SUBTYPES - 1)).pvalue > 0.001
    # Starts are no copies of each other: 1,000 pairs have a correlation of 0 +- 1 / sqrt(1000).
    second = (starts[:, 1, 0] / np.where(has, shares, 1.0))[has]
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(has.sum())


def test_starts_follow_their_tasks_workers_and_classes():
    frame = misled_crowd(0).to_frame()
    rng = np.random.default_rng(1)
    renamed = frame.assign(
        task=rng.permutation(120)[frame["task"]],
        worker=rng.permutation(8)[frame["worker"]],
        label=1 - frame["label"],
    )
    one, other = (bc.EBCC(n_subtypes=3, n_starts=4).fit(f) for f in (frame, renamed))
    names = frame.drop_duplicates("task")["task"]
    renames = dict(zip(names, renamed["task"][names.index], strict=True))
    moved = other.probas_.loc[[renames[task] for task in one.probas_.index]]
    # Sums in another order round differently; iterations magnify that a little.
    np.testing.assert_allclose(moved.to_numpy()[:, ::-1], one.probas_, atol=1e-6)
    np.testing.assert_allclose(other.bounds_, one.bounds_, rtol=1e-9)


def test_number_of_starts_does_not_change_the_first():
    ann = misled_crowd(2)
    few, many = (bc.EBCC(n_subtypes=3, n_starts=n).fit(ann).bounds_ for n in (2, 5))
    np.testing.assert_allclose(many[:2], few, rtol=1e-12)


def test_groups_of_starts_change_nothing(monkeypatch):
    ann = misled_crowd(3)
    whole = bc.EBCC(n_subtypes=3, n_starts=4, combine="average").fit(ann)
    monkeypatch.setattr(ebcc_subtypes, "GROUP_ENTRIES", 1)
    single = bc.EBCC(n_subtypes=3, n_starts=4, combine="average").fit(ann)
    np.testing.assert_allclose(single.bounds_, whole.bounds_, rtol=1e-12)
    np.testing.assert_allclose(single.probas_, whole.probas_, atol=1e-9)


# Reference.


@pytest.mark.parametrize("n_iter", [1, 2, 30])
@pytest.mark.parametrize("gold", [False, True])
@pytest.mark.parametrize("crowd", [SMALL, misled_crowd(4, n_tasks=40)], ids=["small", "misled"])
def test_iterations_are_those_of_the_dense_program(crowd, gold, n_iter):
    """Also where empty subtypes are merged, which the dense program does not do."""
    fixed = np.full(crowd.n_tasks, -1)
    if gold:
        fixed[[0, 5]] = [1, 0]
    pairs = WorkerLabelPairs(crowd, fixed)
    fits = ebcc_posteriors(crowd, pairs, n_subtypes=N_SUBTYPES, n_starts=3, n_iter=n_iter, tol=0)
    starts = starts_of(crowd, fixed, 3, N_SUBTYPES)
    for s in range(3):
        r, bounds = dense(crowd, starts[:, s].transpose(0, 2, 1), n_iter, fixed)
        np.testing.assert_allclose(fits.posteriors[s], r.sum(axis=2), atol=1e-7)
        np.testing.assert_allclose(fits.traces[s], bounds, rtol=1e-9)


def test_empty_subtypes_are_merged():
    pairs = WorkerLabelPairs(SMALL)
    fixed = np.full(SMALL.n_tasks, -1)
    group = ebcc_subtypes._Group(
        SMALL, pairs, vote_shares(SMALL, fixed), starts_of(SMALL, fixed, 2, 10)
    )
    group.run(100, 0)
    assert group.r.shape[2] < 10
    assert group._multiplicity.sum() == 10


def test_rows_are_means_over_subtypes():
    est = bc.EBCC(n_subtypes=N_SUBTYPES, n_starts=1, n_iter=30, tol=0).fit(SMALL)
    start = starts_of(SMALL, np.full(SMALL.n_tasks, -1), 1, N_SUBTYPES)[:, 0].transpose(0, 2, 1)
    r, _ = dense(SMALL, start, 30)
    mu = np.tile(np.where(np.eye(3), 4.0, 1.0)[:, None], (SMALL.n_workers, 1, N_SUBTYPES, 1))
    for t, w, label in zip(SMALL.task_codes, SMALL.worker_codes, SMALL.label_codes, strict=True):
        mu[w, :, :, label] += r[t]
    weights = 0.1 / N_SUBTYPES + r.sum(axis=0)
    weights /= weights.sum(axis=1, keepdims=True)
    means = np.einsum("km,wkml->wkl", weights, mu / mu.sum(axis=3, keepdims=True))
    np.testing.assert_allclose(est.confusions_.to_numpy().reshape(-1, 3, 3), means, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("crowd", "published", "bound"),
    [
        # Accuracy and bound that the authors print beside their program, best of 40 starts.
        ("zencrowd_us", 0.912255, -8651.96),
        ("d_product", 0.934937, -17345.0),
        ("cf_amt", 0.856667, -42861.5),
    ],
)
def test_published_accuracy(development_crowd, crowd, published, bound):
    ann, truth = development_crowd(crowd)
    check_published(ann, truth, published, bound)


@pytest.mark.slow
def test_published_accuracy_of_rte(published):
    data = published("rte")
    check_published(data.annotations, data.truth, 0.93125, -9075.35)


def check_published(ann, truth, accuracy, bound):
    est = bc.EBCC(n_starts=40).fit(ann)
    # The best of 40 other starts is another mode of about the same bound: a few nats of thousands,
    # and a standard error of accuracy, of which the difference of two good fits is a small part.
    found = (est.labels_[truth.index] == truth).mean()
    assert found == pytest.approx(accuracy, abs=np.sqrt(accuracy * (1 - accuracy) / len(truth)))
    assert est.bounds_.max() - prior_constants(ann, 10) == pytest.approx(bound, rel=2e-3)


# Invariants.


@pytest.mark.parametrize("seed", range(4))
def test_bounds_never_fall(seed):
    ann = misled_crowd(seed)
    fits = ebcc_posteriors(ann, WorkerLabelPairs(ann), n_subtypes=5, n_starts=4, n_iter=80)
    for trace in fits.traces:
        assert np.diff(trace).min() > -1e-9 * abs(trace[-1])  # rounding of a sum


def test_best_start_and_average():
    ann = misled_crowd(5)
    fits = ebcc_posteriors(ann, WorkerLabelPairs(ann), n_subtypes=3, n_starts=5)
    best = bc.EBCC(n_subtypes=3, n_starts=5).fit(ann)
    np.testing.assert_array_equal(best.probas_, fits.posteriors[np.argmax(fits.bounds)])
    average = bc.EBCC(n_subtypes=3, n_starts=5, combine="average").fit(ann)
    np.testing.assert_allclose(average.probas_, fits.posteriors.mean(axis=0), rtol=1e-12)
    assert best.trace_[-1] == fits.bounds.max() == best.bounds_.max()


# Recovery and control.


def test_subtypes_are_preferred_where_errors_depend_and_not_elsewhere():
    """The bound of two subtypes exceeds that of one on misled crowds only."""

    def gain(ann):
        one, two = (
            bc.EBCC(n_subtypes=m, n_starts=5, n_iter=300, tol=0).fit(ann).bounds_.max()
            for m in (1, 2)
        )
        return two - one

    misled = misled_crowd(6, n_tasks=600)
    independent = bc.simulate.one_coin_crowd(600, 8, 2, accuracy=0.75, seed=0).annotations
    assert gain(misled) > 20
    assert gain(independent) < 5


def test_warns_when_it_has_not_settled():
    with pytest.warns(ConvergenceWarning, match="EBCC stopped after n_iter=1"):
        est = bc.EBCC(n_iter=1, n_starts=2).fit(SMALL)
    assert not est.converged_
