"""Judgements left out one by one, against brute force; LOO-PIT of right and of wrong models."""

from functools import partial

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import kstest

import bayescrowd as bc
from bayescrowd.models import access_path, item_difficulty, naive_bayes
from bayescrowd.posterior.container import group_of
from bayescrowd.posterior.leave_one_out import (
    _crowd_case,
    _feature_case,
    _items_of,
    _ranks,
    outcome_log_probability,
)

ITEM = np.array([2, 0, 0, 2, 3, 0, 3])
PLACE = np.array([0, 0, 1, 1, 1, 2, 0])
LABEL = np.array([1, 0, 1, 1, 0, 1, 1])


def small_cases():
    rng = np.random.default_rng(0)
    prevalence = jnp.array([0.3, 0.7])
    labels = item_difficulty.Labels(*map(jnp.asarray, (ITEM, PLACE, LABEL)))
    ability, easiness = (jnp.asarray(rng.normal(size=n)) for n in (3, 4))
    yield item_difficulty, item_difficulty.Params(prevalence, ability, easiness), labels
    target = jnp.array([-1, -1, 1, -1])
    conditional = jnp.asarray(rng.dirichlet(np.ones(2), size=(3, 2)))
    table = naive_bayes.Observations(target, labels.item, labels.worker, labels.label)
    yield naive_bayes, naive_bayes.Params(prevalence, conditional), table
    # two readings of item 0, one of items 2 and 3
    items, features = jnp.array([2, 0, 0, 3]), jnp.array([1, 0, 2, 1])
    reading = jnp.array([0, 1, 2, 0, 3, 1, 3])
    confusion = jnp.asarray(rng.dirichlet(np.ones(2), size=(3, 3, 2)))
    params = access_path.Params(prevalence, conditional, confusion)
    readings = (items, features, reading, labels.worker, labels.label)
    yield access_path, params, access_path.Observations(target, *readings)


def without(data, j):
    """The data without one judgement, which leaves its reading without a label."""
    kept = np.delete(np.arange(len(ITEM)), j)
    if hasattr(data, "reading"):
        fields = {name: getattr(data, name)[kept] for name in ("reading", "group", "label")}
        return data._replace(**fields)
    return data._replace(
        **{
            name: field[kept]
            for name, field in data._asdict().items()
            if field is not None and name not in ("target", "gold")
        }
    )


def log_density(model, params, data):
    log_joint = model.label_log_joint(params, data, n_items=4)
    return logsumexp(np.asarray(log_joint, float), axis=1).sum()


@pytest.mark.parametrize(
    ("model", "params", "data"), [pytest.param(*c, id=c[0].__name__[18:]) for c in small_cases()]
)
def test_probability_of_a_judgement_is_the_density_with_it_over_that_without(model, params, data):
    np.testing.assert_array_equal(_items_of(data), ITEM)
    rank = jnp.asarray(_ranks(ITEM))
    found = outcome_log_probability(
        params, data, rank, model=model, n_items=4, n_outcomes=2, n_ranks=3
    )
    total = log_density(model, params, data)
    for j, label in enumerate(LABEL):
        expected = total - log_density(model, params, without(data, j))
        # float32: sums of a dozen numbers
        assert float(found[j, label]) == pytest.approx(expected, abs=2e-5)
    np.testing.assert_allclose(jnp.exp(found).sum(axis=1), 1.0, rtol=1e-5)


# The container


def readings(n_items=40):
    rng = np.random.default_rng(2)
    kind = pd.Series(rng.choice(["a", "b"], size=n_items))
    rows = []
    for item, feature, worker in np.ndindex(n_items, 2, 3):
        n_values = (3, 2)[feature]
        value = (kind[item] == "a") if rng.random() < 0.8 else rng.integers(n_values)
        rows.append((item, "xy"[feature], f"w{worker}", int(value)))
    frame = pd.DataFrame(rows, columns=["item", "feature", "worker", "value"])
    # readings in no order, some labels missing
    frame = frame.sample(frac=0.8, random_state=3).reset_index(drop=True)
    return frame, kind[:30]


@pytest.fixture(scope="module")
def noisy_post():
    frame, target = readings()
    return bc.sample_posterior(
        access_path,
        frame,
        target=target,
        groups={"w0": "one", "w1": "two", "w2": "one"},
        chains=2,
        draws=20,
        warmup=5,
        progress=False,
    )


def total_log_likelihood(post, case, model):
    data, params, n_items, _ = case(post, group_of(post, "posterior"), model)

    def one(fields):
        log_joint = model.label_log_joint(model.Params(**fields), data, n_items=n_items)
        return jax.nn.logsumexp(log_joint, axis=-1).sum()

    stacked = {name: jnp.asarray(v.reshape(-1, *v.shape[2:])) for name, v in params.items()}
    found = jax.jit(partial(jax.lax.map, one))(stacked)
    return np.asarray(found).reshape(next(iter(params.values())).shape[:2])


def test_the_container_of_readings_is_read_back(noisy_post):
    found = total_log_likelihood(noisy_post, _feature_case, access_path)
    expected = group_of(noisy_post, "sample_stats")["marginal_log_likelihood"]
    # float32 sums of 200 numbers in another order
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_container_of_labels_is_read_back(post):
    found = total_log_likelihood(post, _crowd_case, bc.models.dawid_skene)
    expected = group_of(post, "sample_stats")["marginal_log_likelihood"]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_arviz_draws_its_plots(post, noisy_post):
    for one in (post, noisy_post):
        data = bc.loo_pit_data(one, draws=30)
        names = ("log_likelihood", "posterior_predictive")
        shapes = {group_of(data, name)["label"].shape for name in names}
        assert len(shapes) == 1
        if hasattr(az, "plot_ppc"):  # ArviZ 0.x
            az.plot_loo_pit(data, y="label", ecdf=True)
            az.plot_ppc(one)
        else:
            az.plot_loo_pit(data, backend="none")
            az.plot_ppc_dist(one, kind="ecdf", num_samples=10, backend="none")


def test_the_same_seed_gives_the_same_places(post):
    one, again, other = (bc.loo_pit(post, draws=30, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


# LOO-PIT


N_TASKS = 1000


@pytest.fixture(scope="module")
def lopsided():
    """Workers whose errors all go to one class: a model of one number per worker is wrong."""
    rng = np.random.default_rng(1)
    truth = rng.choice(3, p=[0.4, 0.3, 0.3], size=N_TASKS)
    confusion = np.array([[0.7, 0.02, 0.28], [0.02, 0.7, 0.28], [0.02, 0.28, 0.7]])
    task, worker = np.divmod(np.arange(5 * N_TASKS), 5)
    label = (rng.random(5 * N_TASKS)[:, None] > confusion[truth[task]].cumsum(axis=1)).sum(axis=1)
    return pd.DataFrame({"task": task, "worker": worker, "label": np.minimum(label, 2)})


@pytest.mark.parametrize(("model", "is_right"), [("dawid_skene", True), ("one_coin", False)])
def test_places_are_uniform_for_the_right_model_only(lopsided, model, is_right):
    post = bc.sample_posterior(
        model, lopsided, chains=2, draws=200, warmup=100, predictive=False, log_likelihood=False
    )
    places = bc.loo_pit(post)
    assert places.shape == (5 * N_TASKS,)
    # Tasks are independent given the parameters, the five judgements of one are not: at worst a
    # task counts as one place. Kolmogorov's 1 % limit for as many places as tasks.
    limit = 1.63 / np.sqrt(N_TASKS)
    assert (kstest(places, "uniform").statistic < limit) == is_right


def test_a_prediction_knows_the_other_judgements_of_the_task():
    """Ten workers who are nearly always right agree; a new task could have either class."""
    task, worker = np.divmod(np.arange(400), 10)
    frame = pd.DataFrame({"task": task, "worker": worker, "label": task % 2})
    post = bc.sample_posterior("dawid_skene", frame, chains=2, draws=100, warmup=50)
    data = bc.loo_pit_data(post)
    codes = frame["label"].to_numpy()
    predicted = np.floor(group_of(data, "posterior_predictive")["label"].to_numpy())
    assert (predicted == codes).mean() > 0.85
    new = group_of(post, "posterior_predictive")["label"].to_numpy()
    # 100 tasks with their own classes each time: a share of 1/2 with an error of a few hundredths
    assert abs((new == codes).mean() - 0.5) < 0.1


# Bad input


def test_draws_of_another_model_are_refused(post):
    other = post.copy()
    other.attrs = {**other.attrs, "model": "probit"}
    with pytest.raises(ValueError, match="draws are of the model probit; expected one of"):
        bc.loo_pit_data(other)
