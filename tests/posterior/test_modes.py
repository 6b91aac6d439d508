"""Weights of modes: bridges with known evidence, an enumerated posterior."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

import bayescrowd as bc
from bayescrowd.models import dawid_skene
from bayescrowd.models.dawid_skene import Labels
from bayescrowd.posterior.container import group_of
from bayescrowd.posterior.gibbs import collapsed_of
from bayescrowd.posterior.jumps import Place
from bayescrowd.posterior.modes import (
    bridge,
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
