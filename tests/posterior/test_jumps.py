"""Jumps leave the posterior alone whatever they propose, and collapsed densities are densities."""

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bayescrowd import models
from bayescrowd.models import hierarchical_dawid_skene, mace
from bayescrowd.models.dawid_skene import Labels
from bayescrowd.posterior import gibbs, jumps
from bayescrowd.posterior.conditionals.hierarchical_dawid_skene import Crowd
from bayescrowd.posterior.gibbs import collapsed_of
from bayescrowd.posterior.jumps import Place, fit_proposals

CROWDS = [name for name, facts in models.catalogue("labels").items() if facts.has_conditionals]
COLLAPSED = [
    name for name in CROWDS if gibbs.conditionals_of(getattr(models, name)).collapsed is not None
]

N_DRAWS = 2_000
SIZES = {"n_items": 5, "n_workers": 3, "n_classes": 3}
ITEM, WORKER = map(jnp.asarray, np.divmod(np.arange(15), 3))

MOST_ERRORS = 5.0
"""Standard errors allowed; a hundred statistics leave the band once in 17,000 keys."""


# The collapsed densities


def total_density(model, rests):
    """Density of a rest, summed over all classes and labels of two items and two workers."""
    item, worker = jnp.array([0, 0, 1]), jnp.array([0, 1, 1])
    log_density = partial(
        collapsed_of(model).log_density, prior=model.Prior(), n_workers=2, n_classes=2
    )
    points = [
        (truth, rest, label)
        for truth in product(range(2), repeat=2)
        for label in product(range(2), repeat=3)
        for rest in rests(np.array(truth)[item] == np.array(label))
    ]
    truth, rest, label = (
        jax.tree.map(lambda *x: jnp.stack(x), *one)
        for one in zip(
            *((jnp.array(truth), rest, jnp.array(label)) for truth, rest, label in points),
            strict=True,
        )
    )

    def density(truth, rest, label):
        return jnp.exp(log_density(truth, rest, Labels(item, worker, label)))

    return float(jax.jit(jax.vmap(density))(truth, rest, label).sum())


@pytest.mark.parametrize("name", ["dawid_skene", "one_coin"])
def test_densities_of_classes_sum_to_one(name):
    np.testing.assert_allclose(total_density(getattr(models, name), lambda _: [()]), 1, rtol=1e-4)


def test_the_density_of_classes_and_coins_sums_to_one():
    def coins(is_right):
        # impossible ones, wrong answers that were known, have density zero
        return [jnp.array(knew) for knew in product([False, True], repeat=3)]

    np.testing.assert_allclose(total_density(mace, coins), 1, rtol=1e-4)


def test_the_density_of_classes_and_crowd_sums_to_that_of_the_crowd():
    prior = hierarchical_dawid_skene.Prior()
    crowd, log_strength = np.array([[0.7, 0.3], [0.25, 0.75]]), np.array([1.5, 3.0])
    rest = Crowd(*(jnp.asarray(field, dtype=jnp.float32) for field in (crowd, log_strength)))
    rows = np.where(np.eye(2, dtype=bool), 8 * 0.6, 8 * 0.4)
    expected = np.prod([stats.dirichlet(row).pdf(m) for row, m in zip(rows, crowd, strict=True)])
    expected *= (
        stats.norm(np.log(prior.strength), prior.log_strength_scale).pdf(log_strength).prod()
    )
    found = total_density(hierarchical_dawid_skene, lambda _: [rest])
    np.testing.assert_allclose(found, expected, rtol=1e-4)


# Proposals


@pytest.mark.slow  # compiles two proposals of each model
@pytest.mark.parametrize("name", COLLAPSED)
def test_proposals_have_the_density_that_they_say(name):
    # The mean of p / q over points from q is the probability of the labels, whatever q is.
    model = getattr(models, name)
    labels = Labels(ITEM, WORKER, jnp.asarray([0, 0, 1, 1, 1, 1, 2, 2, 0, 0, 2, 0, 1, 1, 2]))

    @jax.jit
    def log_weights_of(keys, proposals):
        def of_key(key):
            point = jumps.propose(key, proposals, labels, collapsed=collapsed_of(model))
            return jumps.log_weight(
                point, proposals, labels, model.Prior(), collapsed=collapsed_of(model), n_workers=3
            )

        return jax.vmap(of_key)(keys)

    found = []
    for seed in range(2):
        keys = jax.random.split(jax.random.key(seed), 20_000)
        log_weights = np.asarray(log_weights_of(keys, proposals_of(model, seed)), dtype=float)
        scaled = np.exp(log_weights - log_weights.max())
        error = scaled.std() / scaled.mean() / np.sqrt(len(scaled))
        found.append((np.log(scaled.mean()) + log_weights.max(), error))
    (first, error_first), (second, error_second) = found
    assert abs(first - second) < 4 * np.hypot(error_first, error_second)


def test_proposals_keep_known_classes():
    # The mean of p / q is then the probability of the labels and of the known classes.
    model, gold = models.dawid_skene, np.array([-1, 2, -1, 0, -1])
    label = jnp.asarray([0, 0, 1, 1, 1, 1, 2, 2, 0, 0, 2, 0, 1, 1, 2])
    labels = Labels(ITEM, WORKER, label, gold=jnp.asarray(gold))
    collapsed = collapsed_of(model)
    probas = np.random.default_rng(0).dirichlet(np.ones(3), (2, SIZES["n_items"]))
    proposals = fit_proposals(collapsed, [Place(one, {}) for one in probas], gold)

    @jax.jit
    @jax.vmap
    def proposed(key):
        point = jumps.propose(key, proposals, labels, collapsed=collapsed)
        weight = jumps.log_weight(
            point, proposals, labels, model.Prior(), collapsed=collapsed, n_workers=3
        )
        return point.truth, weight

    truth, log_weight = map(np.asarray, proposed(jax.random.split(jax.random.key(0), 4_000)))
    assert (truth[:, gold >= 0] == gold[gold >= 0]).all()
    possible = [z for z in product(range(3), repeat=5) if z[1] == 2 and z[3] == 0]
    densities = jax.jit(
        jax.vmap(
            lambda z: collapsed.log_density(z, (), labels, model.Prior(), n_workers=3, n_classes=3)
        )
    )(jnp.array(possible))
    expected = np.exp(np.asarray(densities, dtype=float)).sum()
    weight = np.exp(log_weight.astype(float))
    assert abs(weight.mean() - expected) < MOST_ERRORS * weight.std() / np.sqrt(len(weight))


def proposals_of(model, seed):
    """Two components that know nothing of the labels; the rest is fitted to broad draws."""
    rng = np.random.default_rng(seed)
    draws = {
        "prevalence": rng.dirichlet(np.ones(3), 200),
        "crowd": rng.dirichlet(np.ones(3), (200, 3)),
        "strength": rng.lognormal(2, 1, (200, 3)),
        "competence": rng.beta(1, 1, (200, 3)),
        "strategy": rng.dirichlet(np.ones(3), (200, 3)),
    }
    params = {name: draws[name] for name in model.Params._fields if name in draws}
    probas = rng.dirichlet(np.ones(3), (2, SIZES["n_items"]))
    return fit_proposals(collapsed_of(model), [Place(one, params) for one in probas])


# The transition


def statistics(params, truth, labels):
    """Bounded functions of each parameter and of the classes, alone and times what labels say."""
    flat = jnp.concatenate([jnp.ravel(field / (1 + jnp.abs(field))) for field in params])
    flat = jnp.concatenate([flat, jax.nn.one_hot(truth, 3).ravel()])
    is_right = truth[labels.item] == labels.label
    seen = [is_right.mean() - 0.6, (truth == 0).mean() - 1 / 3, (labels.label == 0).mean() - 1 / 3]
    return jnp.outer(jnp.array([1.0, *seen]), flat).ravel()


@partial(jax.jit, static_argnames="name")
def around_a_jump(rng_key, proposals, name):
    """Statistics before and after jumps, and after jumps for the labels of another crowd."""
    model = getattr(models, name)
    of_model = gibbs.conditionals_of(model)
    key_model, key_jump, key_draw = jax.random.split(rng_key, 3)
    simulate = partial(model.simulate, item=ITEM, worker=WORKER, **SIZES)
    drawn = jax.vmap(simulate)(jax.random.split(key_model, N_DRAWS))

    def jumped(key_jump, key_draw, params, truth, labels):
        state = gibbs.State(truth, params, jnp.zeros((SIZES["n_items"], 3)))
        chains = gibbs.KernelState(jnp.zeros((), int), state, {}, key_jump)
        chains = jax.tree.map(lambda leaf: leaf[None], chains)
        chains = jumps.jump(
            key_jump,
            chains,
            proposals,
            labels,
            model.Prior(),
            collapsed=collapsed_of(model),
            n_workers=3,
            n_jumps=jumps.N_JUMPS,
        )
        truth, params = jax.tree.map(lambda leaf: leaf[0], chains.draw[:2])
        # Parameters that were integrated out are drawn anew, as the next sweep would.
        return truth, of_model.draw_params(key_draw, truth, params, labels, model.Prior())

    # Both crowds' labels in one call, which is compiled once.
    others = drawn.labels._replace(label=jnp.roll(drawn.labels.label, 1, axis=0))
    once = (drawn.params, drawn.truth)
    both = jax.tree.map(lambda *x: jnp.concatenate(x), (*once, drawn.labels), (*once, others))
    keys = (jax.random.split(key, 2 * N_DRAWS) for key in (key_jump, key_draw))
    truth, params = jax.vmap(jumped)(*keys, *both)
    every = jax.vmap(statistics)
    before = every(drawn.params, drawn.truth, drawn.labels)
    after = every(params, truth, jax.tree.map(lambda x: jnp.concatenate([x, x]), drawn.labels))
    share = (truth[:N_DRAWS] != drawn.truth).any(axis=1).mean()
    return share, before, after[:N_DRAWS], after[N_DRAWS:]


def largest_error(before, after):
    """The largest mean difference, in standard errors."""
    change = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)
    spread = change.std(axis=0) / np.sqrt(len(change))
    return np.abs(change.mean(axis=0)[spread > 1e-9] / spread[spread > 1e-9]).max()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == "dawid_skene" else [pytest.mark.slow])
        for name in COLLAPSED
    ],
)
def test_jumps_leave_the_joint_distribution_alone(name):
    proposals = proposals_of(getattr(models, name), 5)
    share, before, after, of_another = around_a_jump(jax.random.key(0), proposals, name)
    assert share > 0.05  # some jumps are accepted, or the test would be empty
    assert largest_error(before, after) < MOST_ERRORS
    # Control: jumps to the posterior of other labels leave the joint distribution.
    assert largest_error(before, of_another) > MOST_ERRORS


# Bad input


def test_models_without_a_collapsed_density_are_refused():
    with pytest.raises(
        ValueError, match=r"collapsed density of bayescrowd\.models\.task_subtypes is"
    ):
        collapsed_of(models.task_subtypes)
