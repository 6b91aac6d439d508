"""The posterior draws behind a policy, compared with what the policy itself believes."""

import pickle

import numpy as np
import pytest

import bayescrowd as bc

VALUES = {"a": ["x", "y"], "b": ["x", "y"], "c": ["x", "y"]}
COUNTS = [30, 60]


def play(policy, seed=0):
    rng = np.random.default_rng(seed)
    while (query := policy.ask()) is not None:
        says_y = 0.15 if (query.target == "q") == (query.feature == "a") else 0.7
        policy.tell(query, [["x", "y"][int(rng.random() < says_y)] for _ in range(query.n_labels)])
    return policy


@pytest.fixture(scope="module")
def bought():
    """RoundRobin asks about two of three features, never about the third."""
    space = bc.FeatureSpace(classes=["p", "q"], features=VALUES, class_counts=COUNTS)
    policy = bc.RoundRobin(space, 2, 1)
    return play(policy), play(bc.RoundRobin(space, 24, 1))


@pytest.mark.parametrize("method", ["gibbs", "nuts"])
def test_the_draws_are_those_of_the_belief_in_the_users_names(bought, method):
    _, policy = bought
    post = policy.posterior(chains=2, draws=500, warmup=300, method=method, progress=False)
    table = post.posterior["conditional"]
    assert table["feature_value"].to_numpy().tolist() == [f"{f}={v}" for f in "abc" for v in "xy"]
    counts = np.ones((2, 3, 2))
    for _, row in policy.result().history.iterrows():
        place = (["p", "q"].index(row["target"]), "abc".index(row["feature"]))
        counts[(*place, "xy".index(row["answers"][0]))] += 1
    total = counts.sum(axis=2, keepdims=True)
    mean = counts / total
    spread = np.sqrt(mean * (1 - mean) / (total + 1))
    found = table.to_numpy().reshape(-1, 2, 3, 2)
    # Gibbs draws are independent where classes are known, and those of NUTS as good as that for
    # means; 4.5 standard errors for 12 numbers
    assert (np.abs(found.mean(axis=0) - mean) < 4.5 * spread / np.sqrt(1_000)).all()
    assert (np.abs(found.std(axis=0) / spread - 1) < 0.15).all()
    # theta_y: Beta(31, 61), not moved by the instances that were bought
    of_p = post.posterior["prevalence"].to_numpy()[..., 0]
    assert abs(of_p.mean() - 31 / 92) < 4.5 * np.sqrt(31 * 61 / 92**2 / 93 / 1_000)
    assert post.attrs["policy"] == "RoundRobin"
    assert post.attrs["spent"] == 24
    assert "Nothing speaks against" in str(bc.diagnose(post))


def test_log_likelihoods_and_predictions_are_given_the_class(bought):
    _, policy = bought
    post = policy.posterior(chains=2, draws=200, progress=False)
    history = policy.result().history
    assert post.log_likelihood["task"].to_numpy().tolist() == history.index.to_list()
    last = history.iloc[-1]
    name = f"{last['feature']}={last['answers'][0]}"
    probability = post.posterior["conditional"].sel(cls=last["target"], feature_value=name)
    found = post.log_likelihood["labels"].isel(task=-1)
    np.testing.assert_allclose(found, np.log(probability), rtol=1e-4)
    is_y = post.posterior_predictive["label"].mean(("chain", "draw")).to_numpy()
    expected = [
        float(
            post.posterior["conditional"].sel(cls=t, feature_value=f"{f}=y").mean(("chain", "draw"))
        )
        for f, t in zip(history["feature"], history["target"], strict=True)
    ]
    # about 100 predictions of each of 24 labels: a standard error of .05 each
    assert np.abs(is_y - expected).max() < 4.5 * 0.05


def test_features_never_bought_and_a_fixed_prior(bought):
    policy, _ = bought
    fixed = bc.FeatureSpace(classes=["p", "q"], features=VALUES, prior=[0.2, 0.8])
    rare = play(bc.RoundRobin(fixed, 2, 1))
    post = pickle.loads(pickle.dumps(rare.result())).posterior(chains=1, draws=100, progress=False)
    assert post.posterior.sizes["feature_value"] == 6
    for group in (post.posterior, post.prior):
        np.testing.assert_allclose(group["prevalence"], np.full((1, 100, 2), [0.2, 0.8]))
    assert len(policy.result()) == 7
    space = policy.space
    with pytest.raises(ValueError, match="nothing has been learned yet"):
        bc.RoundRobin(space, 9, 1).posterior()
