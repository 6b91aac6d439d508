"""The posterior draws behind a policy, compared with what the policy itself believes."""

import pickle

import arviz as az
import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.budgeted.result import BudgetResult

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
    # what is given says nothing of convergence
    assert not any("prevalence" in problem for problem in bc.diagnose(post).problems)
    assert len(policy.result()) == 7
    space = policy.space
    with pytest.raises(ValueError, match="nothing has been learned yet"):
        bc.RoundRobin(space, 9, 1).posterior()


def test_a_result_with_other_fields_has_the_same_posterior(bought):
    _, policy = bought
    result = policy.result()
    other = result._replace(stopped="by hand")
    assert (type(other), other.stopped, other.spent) == (BudgetResult, "by hand", result.spent)
    assert other.purchases is result.purchases


@pytest.mark.filterwarnings("ignore:Estimated shape parameter:UserWarning")
def test_leaving_one_out_agrees_with_the_closed_form(bought):
    """Without one label, its value has the probability (count - 1) / (total - 1), prior included.

    The ratios of a row with n labels have a relative variance of about p / (n (1 - p)); with 1,000
    draws of rows of about four labels the log of each is known to about .05, the sum to .25.
    """
    _, policy = bought
    post = policy.posterior(chains=2, draws=500, progress=False)
    found = az.loo(post, pointwise=True)
    # ArviZ 0.x and 1.x name the parts of the sum differently.
    parts = np.asarray(found.elpd_i if hasattr(found, "elpd_i") else found.loo_i)
    history = policy.result().history
    said = history["answers"].str[0]
    of_row = [history["target"], history["feature"]]
    n_row = said.groupby(of_row).transform("size")
    n_same = said.groupby([*of_row, said.rename("value")]).transform("size")
    exact = np.log(n_same / (n_row + 1)).to_numpy()
    assert found.n_data_points == len(history)
    np.testing.assert_allclose(parts.sum(), exact.sum(), atol=4 * 0.25)
    np.testing.assert_allclose(parts, exact, atol=0.4)


def play_with_workers():
    """Ann is mostly right, Eve guesses, and a guest answers twice."""
    space = bc.FeatureSpace(classes=["p", "q"], features={"a": ["x", "y"], "b": ["x", "y"]})
    policy = bc.RoundRobin(
        space, 180, 1, model="access_path", labels_per_query=3, worker_parameters="own"
    )
    rng = np.random.default_rng(2)
    wrong = {"ann": 0.05, "bob": 0.2, "eve": 0.5, "guest": 0.2}
    while (query := policy.ask()) is not None:
        workers = ["ann", "bob", "guest" if query.id in (2, 3) else "eve"]
        value = int(rng.random() < (0.1 if query.target == "p" else 0.9))
        answers = ["xy"[value ^ int(rng.random() < wrong[worker])] for worker in workers]
        policy.tell(query, answers, workers)
    return policy


@pytest.mark.slow
def test_workers_have_tables_of_their_own():
    policy = play_with_workers()
    post = policy.posterior(chains=2, draws=300, warmup=200, progress=False)
    confusion = post.posterior["confusion"]
    assert set(confusion["group"].to_numpy()) == {"all", "ann", "bob", "eve"}
    is_right = confusion["answer_value"] == confusion["answer_observed"]
    right = confusion.where(is_right).mean(("chain", "draw", "answer"))
    # about .9 for Ann and .5 for Eve, partially pooled, with a standard deviation of about .06
    assert float(right.sel(group="ann")) > float(right.sel(group="eve")) + 0.1
    assert post.log_likelihood["labels"].shape == (2, 300, len(policy.result().history))
    assert az.loo(post).n_data_points == 60


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:label switching")
def test_workers_tables_by_gibbs_and_nuts_agree():
    policy = play_with_workers()
    gibbs, nuts = (
        policy.posterior(chains=4, draws=1000, method=method, progress=False)
        for method in ("gibbs", "nuts")
    )
    means, variances = [], []
    for post in (gibbs, nuts):
        channel = post.posterior["channel"]  # does not depend on the values' names
        error = az.mcse(post, var_names=["channel"])["channel"]
        means.append(channel.mean(("chain", "draw")))
        variances.append(error**2)
    # 4.5 standard errors for 32 numbers
    error = np.sqrt(variances[0] + variances[1])
    assert bool((np.abs(means[0] - means[1]) < 4.5 * error + 1e-4).all())
