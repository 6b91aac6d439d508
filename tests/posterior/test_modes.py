"""Weights of modes: bridges with known evidence, an enumerated posterior, and what users read."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy.special import logsumexp

import bayescrowd as bc
from bayescrowd.models import dawid_skene
from bayescrowd.models.dawid_skene import Labels
from bayescrowd.posterior.container import group_of
from bayescrowd.posterior.gibbs import collapsed_of
from bayescrowd.posterior.jumps import Place
from bayescrowd.posterior.modes import (
    bridge,
    group_chains,
    mode_note,
    mode_problems,
    weigh_modes,
)

N_ERRORS = 4.0
"""Standard errors allowed; one key in 16,000 leaves the band."""


def test_the_bridge_finds_a_known_constant():
    # p = exp(-3) N(1/2, 1), q = N(0, 1)
    rng = np.random.default_rng(0)
    drawn, proposed = 0.5 + rng.normal(size=(2, 500)), rng.normal(size=1000)
    found = bridge(*(-3 + 0.5 * x - 0.125 for x in (drawn, proposed)))
    assert abs(found.log_evidence + 3) < N_ERRORS * found.error
    assert 0.005 < found.error < 0.05
    # Control: another constant
    assert abs(found.log_evidence + 2.5) > N_ERRORS * found.error


def test_the_evidence_is_that_of_the_enumerated_posterior():
    ann = bc.Annotations.from_matrix([["a", "a", "b"], ["b", "b", None], ["a", None, None]])
    labels = Labels(*map(jnp.asarray, (ann.task_codes, ann.worker_codes, ann.label_codes)))
    density = collapsed_of(dawid_skene).log_density
    terms = [
        float(density(jnp.array(truth), (), labels, dawid_skene.Prior(), n_workers=3, n_classes=2))
        for truth in product(range(2), repeat=3)
    ]
    with pytest.warns(UserWarning, match="crowd is hardly|label switching"):
        post = bc.sample_posterior(
            dawid_skene, ann, most_draws=1000, predictive=False, log_likelihood=False
        )
    params = {name: values.to_numpy() for name, values in group_of(post, "posterior").items()}
    probas = group_of(post, "label_posterior")["probability"].to_numpy()
    places = [Place(probas[c], {n: values[c] for n, values in params.items()}) for c in range(4)]
    found = weigh_modes(
        jax.random.key(0),
        np.array([0, 0, 0, 0]),
        places,
        labels,
        dawid_skene.Prior(),
        model=dawid_skene,
        n_workers=3,
    )
    assert found.error[0] < 0.2
    assert abs(found.log_evidence[0] - logsumexp(terms)) < N_ERRORS * found.error[0]


def test_chains_that_agree_are_in_one_mode():
    draws = np.random.default_rng(0).normal(size=(5, 300, 4))
    draws[[1, 3], :, 2] += 4
    draws[4, :, 0] -= 4
    assert group_chains([draws, draws[:, :, 0]]).tolist() == [0, 1, 0, 1, 2]
    assert group_chains([draws[:, :, [1, 3]]]).tolist() == [0] * 5


def modes(mode_of_chain, log_evidence):
    probability = np.zeros((2, 10, 3))
    probability[0, :, 0] = 1.0
    probability[1, :7, 0], probability[1, 7:, 2] = 1.0, 1.0
    heights = np.array(log_evidence)
    return xr.Dataset(
        {
            "weight": ("mode", np.exp(heights - logsumexp(heights))),
            "log_evidence": ("mode", heights),
            "log_evidence_error": ("mode", np.array([0.2, 0.3])),
            "mode_of_chain": ("chain", np.array(mode_of_chain)),
            "probability": (("mode", "task", "cls"), probability),
        },
        coords={"cls": ["cat", "dog", "fox"]},
    )


def test_modes_are_named_in_words():
    (found,) = mode_problems(modes([0, 1, 0, 0], [-100.0, -102.0]))
    assert "has 2 modes" in found
    assert "0.88 in mode 0 (chains 0, 2 and 3)" in found
    assert "0.12 in mode 1 (chain 1, -2.0 nats, give or take 0.3)" in found
    assert "3 of 10 tasks another class than mode 0, mostly 'fox' for 'cat' (3)" in found


def test_modes_that_hold_nothing_are_no_problem_once_left():
    left = modes([0, 0, 0, 0], [-100.0, -115.0])
    assert mode_problems(left) == []
    assert mode_note(left) == (
        "Chains found and left another mode, which holds 3e-07 of the posterior."
    )


def test_a_mode_that_was_left_for_no_good_reason_is_a_problem():
    assert "no chain" in mode_problems(modes([0, 0, 0, 0], [-100.0, -101.0]))[0]
