"""Variational fits: batches, the bound by hand and against the evidence, exact special cases."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, gammaln, logsumexp

from bayescrowd.models import dawid_skene, item_difficulty
from bayescrowd.models.dawid_skene import Labels
from bayescrowd.posterior import svi
from bayescrowd.posterior.chains import Sizes

SIZES = Sizes(n_items=7, n_workers=3, n_classes=2)


def labels_of(seed=0):
    """Labels of seven tasks: two tasks have none, one has five."""
    item = np.repeat([0, 1, 2, 4, 6], [2, 1, 5, 3, 1])
    rng = np.random.default_rng(seed)
    codes = (item, rng.integers(3, size=len(item)), rng.integers(2, size=len(item)))
    return Labels(*map(jnp.asarray, codes))


def dealt(batch_size):
    return svi.deal(jax.random.key(1), labels_of(), n_items=7, batch_size=batch_size)


# Batches


@pytest.mark.parametrize(("batch_size", "shape"), [(1, (7, 1)), (3, (3, 3)), (7, (1, 7))])
def test_every_label_is_in_one_batch(batch_size, shape):
    batches = dealt(batch_size)
    assert batches.item.shape == shape
    is_item = np.asarray(batches.item) < 7
    assert sorted(np.asarray(batches.item)[is_item]) == list(range(7))
    assert np.ptp(is_item.sum(axis=1)) <= 1
    place, worker, label = map(np.asarray, batches.labels)
    batch, column = np.nonzero(place < shape[1])
    item = np.asarray(batches.item)[batch, place[batch, column]]
    found = np.stack([item, worker[batch, column], label[batch, column]])
    expected = np.stack([np.asarray(codes) for codes in labels_of()])
    np.testing.assert_array_equal(
        found[:, np.lexsort(found[::-1])], expected[:, np.lexsort(expected[::-1])]
    )


def test_a_batch_larger_than_the_data_is_all_of_them():
    for few, many in zip(jax.tree.leaves(dealt(7)), jax.tree.leaves(dealt(10**9)), strict=True):
        np.testing.assert_array_equal(few, many)


# The bound


WIDTH = 1e-5


def narrow_guide():
    """Normals of no width, whose means differ from parameter to parameter."""
    rng = np.random.default_rng(2)
    shapes = {"prevalence": 1, "ability": 3, "log_easiness": 7}
    loc = {site: jnp.asarray(rng.normal(0.5, 0.5, size=shape)) for site, shape in shapes.items()}
    log_scale = {site: jnp.full(shape, np.log(WIDTH)) for site, shape in shapes.items()}
    return svi.Guide(loc, log_scale)


@jax.jit
def bound_and_slope(batches, batch):
    def bound(guide):
        return svi.batch_elbo(
            *(jax.random.key(0), guide, batches, batch, item_difficulty.Prior()),
            model=item_difficulty,
            sizes=SIZES,
        )

    return jax.value_and_grad(bound)(narrow_guide())


def test_the_bound_of_a_narrow_guide_by_hand():
    # Normals of no width leave the density at their means and their entropy. With two classes the
    # prevalence is a logistic function of one number.
    found, _ = bound_and_slope(dealt(7), 0)
    loc = {site: np.asarray(value, dtype=float) for site, value in narrow_guide().loc.items()}
    p = np.array([expit(loc["prevalence"][0]), expit(-loc["prevalence"][0])])
    expected = stats.dirichlet.logpdf(p, [3, 3]) + np.log(p).sum()
    expected += stats.norm.logpdf(np.concatenate([loc["ability"], loc["log_easiness"]]), 1).sum()
    expected += 11 * stats.norm(0, WIDTH).entropy()
    item, worker, label = map(np.asarray, labels_of())
    for i in range(7):
        own = item == i
        right = expit(loc["ability"][worker[own]] * np.exp(loc["log_easiness"][i]))
        answers = [np.where(label[own] == j, right, 1 - right).prod() for j in range(2)]
        expected += np.log(p @ answers)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_batches_leave_the_bound_and_its_slope_unbiased():
    # Batches of 3, 2 and 2 tasks: their mean is the bound of all labels, tasks' own normals among
    # them. The draws differ from batch to batch, hence normals of no width.
    each = [bound_and_slope(dealt(3), batch) for batch in range(3)]
    in_parts = jax.tree.map(lambda *values: np.mean(np.stack(values), axis=0), *each)
    at_once = bound_and_slope(dealt(7), 0)
    np.testing.assert_allclose(in_parts[0], at_once[0], rtol=1e-5)
    for part, whole in zip(*map(jax.tree.leaves, (in_parts[1], at_once[1])), strict=True):
        np.testing.assert_allclose(part, whole, rtol=1e-3, atol=1e-3)


def log_evidence():
    """Log probability of the labels under Dawid and Skene's model: a sum over 128 classes."""
    item, worker, label = map(np.asarray, labels_of())
    rows = np.array([[4.8, 3.2], [3.2, 4.8]])

    def log_sequence(counts, concentration):
        counts, concentration = np.asarray(counts, float), np.asarray(concentration, float)
        total = concentration.sum(axis=-1)
        each = gammaln(concentration + counts) - gammaln(concentration)
        return (gammaln(total) - gammaln(total + counts.sum(axis=-1)) + each.sum(axis=-1)).sum()

    terms = []
    for truth in map(np.array, product(range(2), repeat=7)):
        counts = np.zeros((3, 2, 2))
        np.add.at(counts, (worker, truth[item], label), 1)
        classes = np.bincount(truth, minlength=2)
        terms.append(log_sequence(classes, [3, 3]) + log_sequence(counts, rows))
    return logsumexp(terms)


def fitted(model, labels, sizes, *, steps, batch_size=4096, chains=2, seed=0):
    keys = jax.random.split(jax.random.key(seed), chains)
    arguments = {**sizes._asdict(), "prior": model.Prior()}
    return svi.Variational(model, batch_size).init(keys, steps, None, (labels,), arguments)


def test_the_bound_ends_below_the_evidence_but_near():
    state = fitted(dawid_skene, labels_of(), SIZES, steps=3000)
    elbo = np.asarray(state.elbo, dtype=float)
    last = elbo[:, -30:]
    error = last.std() / np.sqrt(last.size)
    gap = log_evidence() - last.mean()
    # 14 parameters of nearly prior width, each with some hundredths of a nat to a normal's
    assert -4 * error < gap < 1.0
    assert (elbo[:, 0] < last.mean() - 10 * error).all()


def test_normal_posteriors_are_found_exactly():
    # A worker and a task without labels keep their normal priors, which the guide contains, in
    # whatever batches. Standard deviations of the estimates over seeds were 0.03; four of them.
    crowd = Labels(*(codes[:12] for codes in labels_of()))
    sizes = Sizes(n_items=7, n_workers=4, n_classes=2)
    guide = fitted(item_difficulty, crowd, sizes, steps=3000, batch_size=3).guide
    for site, index in (("ability", 3), ("log_easiness", 3), ("log_easiness", 5)):
        np.testing.assert_allclose(guide.loc[site][:, index], 1, atol=0.12)
        np.testing.assert_allclose(np.exp(guide.log_scale[site][:, index]), 1, atol=0.12)
