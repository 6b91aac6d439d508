"""Lemma 1 and equations 4 to 11 of Zhao and Zucker, by sums over every configuration."""

import math
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.experiments.engine.command import run_in_folder
from bayescrowd.experiments.engine.results import _number
from bayescrowd.experiments.mi.figure2 import (
    EXPERIMENT,
    Mixture,
    bound,
    divergence,
    em_step,
    expected_joint,
    gap,
    gap_by_lemma_1,
    gap_by_pairs,
    joint,
    log_likelihood,
    negative_entropy,
    random_mixture,
)

SIZES = [(2, 2), (2, 3, 2), (3, 2, 2, 2)]


class Enumerated:
    """The quantities of section 4, term by term, for a data distribution and Theta^t."""

    def __init__(self, data, mixture):
        self.data = {x: float(p) for x, p in np.ndenumerate(data)}
        self.mixture = mixture
        self.components = range(len(mixture.weights))
        self.n_features = data.ndim
        self.tilde = {
            (x, y): p * self.both(mixture, x, y) / self.evidence(mixture, x)
            for x, p in self.data.items()
            for y in self.components
        }

    def both(self, mixture, x, y):
        profiles = zip(mixture.profiles, x, strict=True)
        return mixture.weights[y] * math.prod(profile[y, v] for profile, v in profiles)

    def evidence(self, mixture, x):
        return sum(self.both(mixture, x, y) for y in self.components)

    def likelihood(self, mixture):
        return sum(p * math.log(self.evidence(mixture, x)) for x, p in self.data.items())

    def entropy(self):
        return -sum(p * math.log(p) for p in self.data.values())

    def bound(self, at):
        """F(Theta; Theta^t), below equation 4."""
        return sum(
            t * (math.log(self.both(at, x, y)) - math.log(t / self.data[x]))
            for (x, y), t in self.tilde.items()
        )

    def share(self, y, **at):
        """P~(y), or P~(x_i = v, ..., y) with features named f0, f1, ..."""
        chosen = {int(name[1:]): value for name, value in at.items()}
        return sum(
            t
            for (x, other), t in self.tilde.items()
            if other == y and all(x[f] == v for f, v in chosen.items())
        )

    def lemma_1(self):
        """Equation 6."""
        total = 0.0
        for (x, y), t in self.tilde.items():
            weight = self.share(y)
            product_ = math.prod(self.share(y, **{f"f{f}": v}) / weight for f, v in enumerate(x))
            total += t * math.log((t / weight) / product_)
        return total

    def pairs(self):
        """Equation 10."""
        total = 0.0
        for i, j in combinations(range(self.n_features), 2):
            values = {(x[i], x[j]) for x in self.data}
            for (v, w), y in product(values, self.components):
                weight = self.share(y)
                both = self.share(y, **{f"f{i}": v, f"f{j}": w})
                apart = self.share(y, **{f"f{i}": v}) * self.share(y, **{f"f{j}": w})
                total += both * math.log(both * weight / apart)
        return total


@pytest.fixture(params=[(sizes, seed) for sizes in SIZES for seed in range(3)], ids=str)
def case(request):
    sizes, seed = request.param
    rng = np.random.default_rng(seed)
    data = joint(random_mixture(rng, 3, sizes)).sum(axis=0)
    mixture = random_mixture(rng, 2, sizes)
    return data, mixture, Enumerated(data, mixture)


def test_likelihood_entropy_divergence_and_bound(case):
    data, mixture, by_hand = case
    after = em_step(data, mixture)
    for there in (mixture, after):
        assert log_likelihood(data, there) == pytest.approx(by_hand.likelihood(there))
        assert bound(data, there, mixture) == pytest.approx(by_hand.bound(there))
    assert negative_entropy(data) == pytest.approx(-by_hand.entropy())
    kl = sum(p * math.log(p / by_hand.evidence(mixture, x)) for x, p in by_hand.data.items())
    assert divergence(data, mixture) == pytest.approx(kl)


def test_equations_4_and_5(case):
    """The M-step minimises G: no other parameters, near or far, have a smaller one."""
    data, mixture, by_hand = case
    after = em_step(data, mixture)
    for y in by_hand.components:
        assert after.weights[y] == pytest.approx(by_hand.share(y))
        for f, profile in enumerate(after.profiles):
            expected = [
                by_hand.share(y, **{f"f{f}": v}) / by_hand.share(y) for v in range(profile.shape[1])
            ]
            np.testing.assert_allclose(profile[y], expected)
    least = -by_hand.entropy() - by_hand.bound(after)
    assert gap(data, after, mixture) == pytest.approx(least)
    rng = np.random.default_rng(9)
    for share in np.geomspace(1e-3, 1, 20):
        other = random_mixture(rng, 2, data.shape)
        profiles = zip(after.profiles, other.profiles, strict=True)
        moved = Mixture(
            (1 - share) * after.weights + share * other.weights,
            tuple((1 - share) * a + share * b for a, b in profiles),
        )
        assert gap(data, moved, mixture) > least


def test_lemma_1_and_equations_7_to_9(case):
    data, mixture, by_hand = case
    after = em_step(data, mixture)
    seven = -by_hand.entropy() - by_hand.bound(after)
    eight = sum(t * math.log(t / by_hand.both(after, x, y)) for (x, y), t in by_hand.tilde.items())
    nine = sum(
        t
        * math.log(
            t
            / math.prod(
                [
                    by_hand.share(y),
                    *(by_hand.share(y, **{f"f{f}": v}) / by_hand.share(y) for f, v in enumerate(x)),
                ]
            )
        )
        for (x, y), t in by_hand.tilde.items()
    )
    assert [eight, nine, by_hand.lemma_1()] == pytest.approx([seven] * 3)
    assert gap_by_lemma_1(data, mixture) == pytest.approx(seven)


def test_figure_2(case):
    """G lies between the divergences before and after, and the bound touches at Theta^t."""
    data, mixture, by_hand = case
    after = em_step(data, mixture)
    assert divergence(data, after) < gap(data, after, mixture) < divergence(data, mixture)
    assert by_hand.bound(mixture) == pytest.approx(by_hand.likelihood(mixture))


def test_equation_10_and_proposition_1(case):
    data, mixture, by_hand = case
    assert gap_by_pairs(data, mixture) == pytest.approx(by_hand.pairs())
    if data.ndim == 2:  # one pair is everything
        assert gap_by_pairs(data, mixture) == pytest.approx(gap_by_lemma_1(data, mixture))
    alone = Mixture(
        np.ones(1),
        tuple(
            data.sum(axis=tuple(a for a in range(data.ndim) if a != f))[None]
            for f in range(data.ndim)
        ),
    )
    information = Enumerated(data, alone).pairs()
    assert gap_by_pairs(data, alone) == pytest.approx(information)
    expected = 0.0
    for i, j in combinations(range(data.ndim), 2):
        pair = data.sum(axis=tuple(a for a in range(data.ndim) if a not in (i, j)))
        for (v, w), p in np.ndenumerate(pair):
            expected += p * math.log(p / (pair[v].sum() * pair[:, w].sum()))
    assert information == pytest.approx(expected)


def test_the_estimator_takes_the_steps_of_the_paper():
    """`MDPD` on a table whose rows have exactly the shares of P_0: one step, G's pairs, and F."""
    rng = np.random.default_rng(4)
    counts = rng.integers(1, 40, size=(2, 3, 2))
    data = counts / counts.sum()
    rows = np.repeat(list(np.ndindex(counts.shape)), counts.ravel(), axis=0)
    table = pd.DataFrame(rows, columns=["a", "b", "c"])
    mixture = random_mixture(rng, 2, counts.shape)
    tilde = expected_joint(data, mixture)
    posterior = (tilde / data)[(slice(None), *rows.T)].T
    options = {"init": posterior, "n_init": 1, "pseudo_counts": 0.0, "tol": 0.0}
    fitted = bc.MDPD(2, n_iter=1, **options).fit(table)
    after = em_step(data, mixture)
    np.testing.assert_allclose(fitted.weights_, after.weights)
    for feature, profile in zip("abc", after.profiles, strict=True):
        np.testing.assert_allclose(fitted.profiles_.loc[feature], profile.T)
    assert fitted.log_likelihood_ / len(table) == pytest.approx(log_likelihood(data, after))
    # its lack of fit is equation 10 where it stands, at Theta^(t+1)
    assert fitted.lack_of_fit_ == pytest.approx(gap_by_pairs(data, after))
    one = bc.MDPD(1, n_init=1, pseudo_counts=0.0).fit(table)
    total = bc.pairwise_mutual_information(table).to_numpy().sum() / 2
    assert one.lack_of_fit_ == pytest.approx(total)


def test_what_holds_and_what_does_not(tmp_path):
    outcomes = run_in_folder(EXPERIMENT, tmp_path, n_seeds=8, n_jobs=1)
    claims = {claim.text: claim.holds for claim in EXPERIMENT.claims(outcomes)}
    assert len(claims) == 6
    assert [text for text, holds in claims.items() if not holds] == [
        "the sum over pairs (10) approximates G, which we take to mean within a tenth"
    ]
    assert (tmp_path / "mi-figure2.png").stat().st_size > 10_000


def test_control_a_step_too_far_is_noticed(tmp_path):
    outcomes = run_in_folder(EXPERIMENT, tmp_path, n_seeds=2, n_jobs=1)
    wrong = [
        o._replace(values=tuple(v + 1 for v in o.values)) if o.cell.id.row == "G" else o
        for o in outcomes
    ]
    assert not EXPERIMENT.claims(wrong)[0].holds


def test_rounding_noise_is_printed_without_a_sign():
    cell = EXPERIMENT.cells[0]
    assert _number(cell, -1e-17) == f"{0:.{cell.decimals}f}"
    assert _number(cell, -0.5).startswith("-")
