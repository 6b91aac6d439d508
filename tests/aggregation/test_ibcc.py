"""iBCC against a dense program of its own, quadrature, and the published accuracies."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import digamma
from scipy.stats import dirichlet
from sklearn.exceptions import ConvergenceWarning

import bayescrowd as bc
from bayescrowd.aggregation import ibcc
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs

ROWS = [
    *("aabca", "bbbcb", "cccca", "aaabb", "bcbcb", "cacca", "aaaba", "bbacb"),
    *("ccbcc", "abaca", "bbbab", "cccbc", "aaaca", "bbbba", "accaa", "bbcab"),
]
SMALL = bc.Annotations.from_matrix([list(row) for row in ROWS])


def dense(ann, n_iter, *, right=4.0, wrong=1.0, alpha=1.0, fixed=None):
    """Variational Bayes with whole matrices, label by label; the bound of every iteration."""
    n_classes, n_workers = ann.n_classes, ann.n_workers
    labels = list(zip(ann.task_codes, ann.worker_codes, ann.label_codes, strict=True))
    beta = np.where(np.eye(n_classes, dtype=bool), right, wrong)
    q = np.zeros((ann.n_tasks, n_classes))
    for t, _, label in labels:
        q[t, label] += 1
    q /= q.sum(axis=1, keepdims=True)
    fixed = {} if fixed is None else fixed
    for t, cls in fixed.items():
        q[t] = np.eye(n_classes)[cls]
    bounds = []
    for _ in range(n_iter):
        nu = alpha + q.sum(axis=0)
        mu = np.tile(beta, (n_workers, 1, 1))
        for t, w, label in labels:
            mu[w, :, label] += q[t]
        log_tau = digamma(nu) - digamma(nu.sum())
        log_v = digamma(mu) - digamma(mu.sum(axis=2, keepdims=True))
        scores = np.tile(log_tau, (ann.n_tasks, 1))
        for t, w, label in labels:
            scores[t] += log_v[w, :, label]
        for t, cls in fixed.items():
            scores[t, np.arange(n_classes) != cls] = -np.inf
        q = np.exp(scores - scores.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
        # E log p(labels, classes, parameters) - E log q, term by term.
        possible = q > 0
        bound = (q[possible] * (scores[possible] - np.log(q[possible]))).sum()
        bound += expected_log_density(np.full(n_classes, alpha), nu) + dirichlet.entropy(nu)
        for w in range(n_workers):
            for k in range(n_classes):
                bound += expected_log_density(beta[k], mu[w, k]) + dirichlet.entropy(mu[w, k])
        bounds.append(bound)
    return q, mu, nu, np.array(bounds)


def expected_log_density(prior, parameters):
    """E log Dirichlet(x; prior) for x ~ Dirichlet(parameters)."""
    log_x = digamma(parameters) - digamma(parameters.sum())
    # The density at the uniform point gives the constant: log x is -log n there.
    n = len(prior)
    constant = dirichlet.logpdf(np.full(n, 1 / n), prior) + ((prior - 1) * np.log(n)).sum()
    return constant + ((prior - 1) * log_x).sum()


# By hand.


def test_prior_of_rows():
    np.testing.assert_array_equal(ibcc.row_prior(3, 4.0, 1.0), [[4, 1, 1], [1, 4, 1], [1, 1, 4]])


def test_mean_of_workers_is_that_of_whole_matrices():
    est = bc.IBCC().fit(SMALL)
    weights = np.bincount(SMALL.worker_codes) / SMALL.n_labels
    matrices = est.confusions_.to_numpy().reshape(-1, 3, 3)
    np.testing.assert_allclose(est._rows.stranger, np.tensordot(weights, matrices, 1), rtol=1e-12)


# Closed form.


def test_divergence_is_the_integral():
    """KL of Dirichlet(5, 3) from Dirichlet(4, 1), of one worker and one class, by quadrature."""
    ann = bc.Annotations.from_matrix([["a"], ["b"]])
    counts = np.array([[1.0, 0.0], [2.0, 0.0]])  # [label, true]
    found = ibcc.dirichlet_rows(WorkerLabelPairs(ann), counts, ibcc.row_prior(2, 4.0, 1.0))

    def integrand(x):
        point = [x, 1 - x]
        q, p = dirichlet.logpdf(point, [5, 3]), dirichlet.logpdf(point, [4, 1])
        return np.exp(q) * (q - p)

    expected, _ = quad(integrand, 1e-12, 1 - 1e-12, epsabs=1e-10)
    np.testing.assert_allclose(found.divergence, [expected, 0.0], atol=1e-7)


# Reference.


@pytest.mark.parametrize("n_iter", [1, 2, 25])
@pytest.mark.parametrize("fixed", [{}, {0: 2, 5: 1}], ids=["no gold", "gold"])
def test_iterations_are_those_of_the_dense_program(n_iter, fixed):
    gold = {SMALL.tasks[t]: SMALL.classes[cls] for t, cls in fixed.items()}
    est = bc.IBCC(n_iter=n_iter, tol=0, right=3.0, wrong=0.5, class_prior=2.0).fit(SMALL, gold)
    q, _, _, bounds = dense(SMALL, n_iter, right=3.0, wrong=0.5, alpha=2.0, fixed=fixed)
    np.testing.assert_allclose(est.probas_, q, atol=1e-10)
    np.testing.assert_allclose(est.trace_, bounds, rtol=1e-10)
    if not fixed:
        # The description has one more update of the parameters than the last E-step.
        _, mu, nu, _ = dense(SMALL, n_iter + 1, right=3.0, wrong=0.5, alpha=2.0)
        np.testing.assert_allclose(est.priors_, nu / nu.sum(), atol=1e-10)
        means = mu / mu.sum(axis=2, keepdims=True)
        np.testing.assert_allclose(est.confusions_.to_numpy().reshape(-1, 3, 3), means, atol=1e-10)


@pytest.mark.parametrize(
    ("crowd", "published", "n_off"),
    [
        # Accuracies of the authors' program, printed in the notebook beside it.
        ("d_product", 0.938304, 0),
        ("zencrowd_us", 0.826961, 0),
        ("cf_amt", 0.856667, 0),
        ("sp_amt", 0.944, 0),
        # Their program stops earlier, which one task notices.
        ("zencrowd_in", 0.769608, 1),
    ],
)
def test_published_accuracy(development_crowd, crowd, published, n_off):
    ann, truth = development_crowd(crowd)
    labels = bc.IBCC().fit_predict(ann)[truth.index]
    assert (labels == truth).mean() == pytest.approx(published, abs=(n_off + 0.5) / len(truth))


# Invariants.


@pytest.mark.parametrize("seed", range(5))
def test_bound_never_falls(seed):
    ann = bc.simulate.crowd(60, 9, 3, labels_per_task=4, accuracy=0.6, seed=seed).annotations
    est = bc.IBCC(n_iter=60, tol=0).fit(ann)
    assert np.diff(est.trace_).min() > -1e-9 * abs(est.trace_[-1])  # rounding of a sum


def test_new_tasks_are_judged_as_those_of_the_fit():
    """At a fixed point, the posterior of a known task follows from the others' parameters."""
    est = bc.IBCC(n_iter=2000, tol=1e-13).fit(SMALL)
    # priors_ are means and not expected logarithms: a difference of order 1 / (2 n_k).
    np.testing.assert_allclose(est.predict_proba(SMALL), est.probas_, atol=0.01)


def test_warns_when_it_has_not_settled():
    with pytest.warns(ConvergenceWarning, match="IBCC stopped after n_iter=2"):
        est = bc.IBCC(n_iter=2).fit(SMALL)
    assert not est.converged_


# Control.


def test_strong_prior_makes_it_a_vote():
    """With certain priors all workers are alike, and the answers are those of the majority."""
    est = bc.IBCC(right=4e6, wrong=1e6).fit(SMALL)
    vote = bc.MajorityVote().fit(SMALL)
    clear = vote.probas_.max(axis=1) > 0.5
    assert (est.labels_[clear] == vote.labels_[clear]).all()
    spread = est.confusions_.groupby("true").std().to_numpy()
    assert spread.max() < 1e-4
