"""A user's own model: it decides what is bought, and is refused with reasons."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats
from scipy.special import betaln

import bayescrowd as bc
from bayescrowd.budgeted.beliefs.label_multisets import multisets
from bayescrowd.budgeted.beliefs.model_sampler import ModelSampler
from bayescrowd.budgeted.beliefs.own_model import MultisetChannelReader

SPACE = bc.FeatureSpace(classes=["p", "q"], features={"x": ["a", "b"], "y": ["a", "b"]})


def likelihood(conditional, observations, n_items):
    target, item, feature, value = observations
    said = jnp.log(conditional)[feature, :, value]
    by_item = jax.ops.segment_sum(said, item, num_segments=n_items)
    own = jnp.take_along_axis(by_item, jnp.maximum(target, 0)[:, None], axis=1)[:, 0]
    numpyro.factor("readings", jnp.where(target >= 0, own, 0.0).sum())


def hierarchical(observations, *, n_items, n_classes, n_values):
    """Rows of all features share the strength with which they are drawn toward even ones."""
    strength = numpyro.sample("strength", dist.Gamma(2.0, 0.2))
    shape = (len(n_values), n_classes)
    rows = dist.Dirichlet(strength * jnp.ones(max(n_values))).expand(shape).to_event(2)
    conditional = numpyro.sample("conditional", rows)
    likelihood(conditional, observations, n_items)


def yes_of(sites):
    return sites["conditional"]


def twice(sites):
    return 2 * sites["conditional"]


def one_feature(sites):
    return sites["conditional"][:1]


def careless(observations, *, n_items, n_classes, n_values):
    rows = dist.Dirichlet(jnp.ones(2)).expand((2, n_classes)).to_event(2)
    conditional = numpyro.sample("conditional", rows)
    target, _, feature, value = observations
    numpyro.factor("readings", jnp.log(conditional)[feature, target[0], value].sum())


def discrete(observations, *, n_items, n_classes, n_values):
    numpyro.sample("kind", dist.Bernoulli(0.5))


def lacking(observations, *, n_items):
    numpyro.sample("x", dist.Normal())


def without_channel(observations, *, n_items, n_classes, n_values):
    numpyro.sample("x", dist.Normal())


@pytest.fixture(scope="module")
def played():
    policy = bc.TsGreedy(SPACE, 16, 1, sampler=ModelSampler(hierarchical), seed=1)
    while (query := policy.ask()) is not None:
        policy.tell(query, "a" if query.feature == "x" and query.target == "p" else "b")
    return policy


def test_a_hierarchical_model_selects_and_is_replayed(played):
    assert played.result().selected == ("x",)
    again = bc.TsGreedy(SPACE, 16, 1, sampler=ModelSampler(hierarchical), seed=1)
    again.replay(played.events)
    np.testing.assert_array_equal(again.state.belief.mean(), played.state.belief.mean())
    assert played.credibility().between(0, 1).all()
    # x tells of rows far from even; y, seen less, follows with what is shared
    assert played.state.belief.mean()[0, 0, 0] > 0.6


def integrated(policy):
    """Mean of `conditional` and of the strength: rows summed out, the strength on a grid."""
    history = policy.result().history
    counts = np.zeros((2, 2, 2))
    for feature, target, answers in history[["feature", "target", "answers"]].itertuples(
        index=False
    ):
        counts["xy".index(feature), "pq".index(target), "ab".index(answers[0])] += 1
    strength = np.linspace(0.001, 120, 40_000)
    log_weight = stats.gamma(2, scale=1 / 0.2).logpdf(strength)
    for a, b in counts.reshape(-1, 2):
        log_weight += betaln(strength + a, strength + b) - betaln(strength, strength)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    rows = strength[:, None, None, None] + counts
    mean = np.tensordot(weight, rows / rows.sum(axis=-1, keepdims=True), 1)
    return mean, float(weight @ strength)


def test_its_posterior_has_its_own_sites(played):
    post = played.posterior(chains=2, draws=200, warmup=200, progress=False)
    assert post.posterior["strength"].shape == (2, 200)
    channel = post.posterior["channel"]
    assert channel.dims == ("chain", "draw", "feature", "cls", "outcome")
    mean, strength = integrated(played)
    spread = channel.std(("chain", "draw")).to_numpy()
    # 400 draws here and 256 of the belief, of which a half may count where strength mixes slowly
    found = channel.mean(("chain", "draw")).to_numpy()
    assert (np.abs(found - mean) < 4.5 * spread * np.sqrt(2 / 400)).all()
    assert (np.abs(played.state.belief.mean() - mean) < 4.5 * spread * np.sqrt(2 / 256)).all()
    drawn = post.posterior["strength"]
    assert abs(float(drawn.mean()) - strength) < 4.5 * float(drawn.std()) * np.sqrt(2 / 400)
    with pytest.raises(ValueError, match="drawn from by 'nuts'"):
        played.posterior(method="gibbs")


@pytest.mark.parametrize(
    ("model", "channels", "complaint"),
    [
        (hierarchical, twice, "sum to 1"),
        (hierarchical, one_feature, r"shape \(2, 2, 2\).*got \(1, 2, 2\)"),
        (careless, yes_of, "counts the padding"),
        (discrete, yes_of, "'kind', which is discrete"),
        (lacking, None, "unexpected keyword argument 'n_classes'.*called with the observations"),
        (without_channel, None, "no site 'conditional'"),
    ],
)
def test_models_that_cannot_be_used_are_refused(model, channels, complaint):
    with pytest.raises(ValueError, match=complaint):
        bc.RoundRobin(SPACE, 9, 1, sampler=ModelSampler(model, channels))


def test_fewer_labels_are_read_as_part_of_a_multiset():
    outcomes = multisets(2, 2)
    right = np.array([[0.9, 0.1], [0.3, 0.7]])
    pairs = np.stack([right[:, 0] ** 2, 2 * right[:, 0] * right[:, 1], right[:, 1] ** 2], axis=1)
    reader = MultisetChannelReader(pairs, outcomes)
    found = np.exp(reader.log_likelihood(np.array([[0, -1, -1], [1, 0, 1], [-1, -1, -1]])))
    expected = [right[:, 0], right[:, 1] * right[:, 0], [1, 1]]
    np.testing.assert_allclose(found, expected)
