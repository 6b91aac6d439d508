"""What the conditionals of every crowd model promise: they leave the model's distribution alone.

Parameters, true classes and labels are drawn from the model; the parameters are then drawn anew
given the classes and labels. If the conditionals are right, they and the labels have the same joint
distribution as before (Geweke 2004, "Getting it right"). Models are found by their export.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayescrowd import models
from bayescrowd.posterior import gibbs

CONJUGATE = [name for name, facts in models.catalogue("labels").items() if facts.has_conditionals]

N_DRAWS = 4_000
SIZES = {"n_items": 6, "n_workers": 3, "n_classes": 3}
ITEM, WORKER = map(jnp.asarray, np.divmod(np.arange(18), 3))

MOST_ERRORS = 5.0
"""Standard errors allowed; a hundred statistics leave the band once in 17,000 keys."""


def statistics(params, truth, labels):
    """Bounded functions of each parameter, alone and times what the labels say."""
    flat = jnp.concatenate([jnp.ravel(field / (1 + jnp.abs(field))) for field in params])
    is_right = truth[labels.item] == labels.label
    # about their expectations, which makes products less noisy
    seen = [is_right.mean() - 0.6, (truth == 0).mean() - 1 / 3, (labels.label == 0).mean() - 1 / 3]
    return jnp.outer(jnp.array([1.0, *seen]), flat).ravel()


@partial(jax.jit, static_argnames="name")
def statistics_around_a_draw(rng_key, name):
    """Statistics before the parameters are drawn anew, after it, and with labels of another crowd.

    Each is [simulation, statistic].
    """
    model = getattr(models, name)
    draw_params = partial(gibbs.conditionals_of(model).draw_params, prior=model.Prior())
    key_model, key_draw = jax.random.split(rng_key)
    simulate = partial(model.simulate, item=ITEM, worker=WORKER, **SIZES)
    drawn = jax.vmap(simulate)(jax.random.split(key_model, N_DRAWS))
    params, truth, labels = drawn.params, drawn.truth, drawn.labels
    keys = jax.random.split(key_draw, N_DRAWS)
    again = jax.vmap(draw_params)(keys, truth, params, labels)
    others = jax.tree.map(partial(jnp.roll, shift=1, axis=0), (truth, labels))
    every = jax.vmap(statistics)
    return every(params, truth, labels), every(again, truth, labels), every(again, *others)


def largest_error(before, after):
    """The largest mean difference, in standard errors."""
    change = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)
    spread = change.std(axis=0) / np.sqrt(len(change))
    return np.abs(change.mean(axis=0)[spread > 1e-9] / spread[spread > 1e-9]).max()


@pytest.mark.parametrize("name", CONJUGATE)
def test_a_draw_of_the_parameters_leaves_the_joint_distribution_alone(name):
    before, after, of_another = statistics_around_a_draw(jax.random.key(0), name)
    assert largest_error(before, after) < MOST_ERRORS
    # Control: the parameters have nothing to do with labels of another crowd.
    assert largest_error(before, of_another) > MOST_ERRORS
