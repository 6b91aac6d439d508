"""Mixtures of discrete product distributions."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import bayescrowd as bc
from bayescrowd.aggregation.votes import vote_shares
from bayescrowd.data.features import as_feature_table
from bayescrowd.information import conditional_mutual_information


def mixed_table(n_items=400, seed=0, missing=0.2):
    """Two kinds of items seen through features with 2, 3 and 4 values, and who is which."""
    rng = np.random.default_rng(seed)
    kind = (rng.random(n_items) < 0.35).astype(int)
    columns = {}
    for f in range(8):
        size = 2 + f % 3
        names = [f"v{v}" for v in range(size)]
        chances = rng.dirichlet(np.ones(size), size=2)
        draw = rng.random(n_items)
        codes = (draw[:, None] >= chances[kind].cumsum(axis=1)[:, :-1]).sum(axis=1)
        values = np.array(names, dtype=object)[codes]
        values[rng.random(n_items) < missing] = None
        columns[f"f{f}"] = values
    return pd.DataFrame(columns), kind


@pytest.fixture(scope="module")
def mixture():
    return bc.MDPD(2, n_init=3).fit(mixed_table()[0])


# By hand.


def test_one_component_is_the_marginals():
    table = pd.DataFrame({"a": ["x", "x", "y", None], "b": [1, 2, 2, 2]})
    found = bc.MDPD(1, pseudo_counts=0, n_init=1).fit(table)
    np.testing.assert_allclose(found.profiles_[0], [2 / 3, 1 / 3, 1 / 4, 3 / 4])
    assert found.log_likelihood_ == pytest.approx(
        2 * np.log(2 / 3) + np.log(1 / 3) + np.log(1 / 4) + 3 * np.log(3 / 4)
    )
    np.testing.assert_allclose(found.observed_rate_, [0.75, 1.0])
    assert found.n_parameters_ == 2
    assert found.bic_ == pytest.approx(-2 * found.log_likelihood_ + 2 * np.log(4))


def test_pseudo_counts_by_hand():
    # Shares of all items with one flat count, (2.5, 1.5) / 4; then two of these on (2, 1).
    table = pd.DataFrame({"a": ["x", "x", "y"]})
    found = bc.MDPD(1, pseudo_counts=2.0, n_init=1).fit(table).profiles_[0]
    np.testing.assert_allclose(found, [(2 + 2 * 2.5 / 4) / 5, (1 + 2 * 1.5 / 4) / 5])


# A special case of it is Dawid and Skene's model.


@pytest.mark.parametrize("prior", ["learned", "uniform"])
@pytest.mark.parametrize("n_iter", [1, 7, 60])
def test_dawid_skene_is_a_mixture_of_workers_labels(prior, n_iter):
    data = bc.simulate.crowd(150, 12, 3, labels_per_task=5, spammers=0.2, seed=2)
    ann = data.annotations
    start = vote_shares(ann, np.full(ann.n_tasks, -1))
    options = {"pseudo_counts": 0, "prior": prior, "n_iter": n_iter, "tol": 0}
    ours = bc.MDPD(3, init=start, n_init=1, **options).fit(ann)
    theirs = bc.DawidSkene(**options).fit(ann)
    np.testing.assert_allclose(ours.responsibilities_, theirs.probas_, atol=1e-8)
    np.testing.assert_allclose(ours.weights_, theirs.priors_, atol=1e-8)
    confusions = theirs.confusions_.to_numpy().reshape(-1, 3, 3)
    profiles = ours.profiles_.to_numpy().reshape(-1, 3, 3).transpose(0, 2, 1)
    np.testing.assert_allclose(profiles, confusions, atol=1e-8)
    np.testing.assert_allclose(ours.trace_, theirs.trace_, rtol=1e-10)


def test_repeated_judgements_count_each_as_in_dawid_skene():
    frame = bc.simulate.crowd(60, 6, 2, seed=3).annotations.to_frame()
    ann = bc.Annotations.from_frame(pd.concat([frame, frame.head(50)]))
    start = vote_shares(ann, np.full(ann.n_tasks, -1))
    ours = bc.MDPD(2, init=start, n_init=1, pseudo_counts=0, n_iter=20, tol=0).fit(ann)
    theirs = bc.DawidSkene(pseudo_counts=0, n_iter=20, tol=0).fit(ann)
    np.testing.assert_allclose(ours.responsibilities_, theirs.probas_, atol=1e-8)


# Invariants.


def test_results_are_distributions(mixture):
    assert mixture.weights_.sum() == pytest.approx(1)
    assert mixture.weights_.is_monotonic_decreasing
    sums = mixture.profiles_.groupby(level="feature").sum()
    np.testing.assert_allclose(sums, 1)
    np.testing.assert_allclose(mixture.responsibilities_.sum(axis=1), 1)
    assert mixture.profiles_.index.names == ["feature", "value"]
    assert mixture.profiles_.loc["f1"].index.to_list() == ["v0", "v1", "v2"]


@pytest.mark.parametrize("pseudo_counts", [0.0, 1.0, 10.0])
def test_the_objective_never_falls(pseudo_counts):
    found = bc.MDPD(3, n_init=1, pseudo_counts=pseudo_counts, n_iter=60, tol=0).fit(
        mixed_table()[0]
    )
    assert (np.diff(found.trace_) >= -1e-9 * abs(found.trace_[0])).all()


def test_more_starts_are_no_worse_and_the_seed_decides():
    table = mixed_table(120)[0]
    one, more = (bc.MDPD(4, n_init=n, seed=5).fit(table) for n in (1, 6))
    assert more.trace_[-1] >= one.trace_[-1]
    again = bc.MDPD(4, n_init=6, seed=5).fit(table)
    pd.testing.assert_frame_equal(more.profiles_, again.profiles_)


def test_order_of_items_and_names_of_values_change_nothing(mixture):
    table = mixed_table()[0]
    start = mixture.responsibilities_
    options = {"n_init": 1, "n_iter": 10, "tol": 0}
    one = bc.MDPD(2, init=start, **options).fit(table)
    turned = table[::-1].assign(f0=table["f0"].map({"v0": "z", "v1": "a"}))
    other = bc.MDPD(2, init=start[::-1], **options).fit(turned)
    np.testing.assert_allclose(
        one.responsibilities_, other.responsibilities_.loc[table.index], atol=1e-9
    )
    assert one.log_likelihood_ == pytest.approx(other.log_likelihood_, rel=1e-12)


def test_a_missing_entry_says_nothing(mixture):
    table = mixed_table()[0]
    holes = table.head(1).copy()
    holes.loc[:, :] = None
    holes.loc[holes.index[0], "f0"] = "v0"
    proba = mixture.predict_proba(holes[["f0"]]).to_numpy()[0]
    joint = mixture.weights_ * mixture.profiles_.loc[("f0", "v0")]
    np.testing.assert_allclose(proba, joint / joint.sum(), rtol=1e-12)
    assert mixture.score(holes[["f0"]]) == pytest.approx(np.log(joint.sum()))


def test_fitted_data_are_scored_as_in_the_fit(mixture):
    table = mixed_table()[0]
    assert mixture.score(table) * len(table) == pytest.approx(mixture.log_likelihood_)
    np.testing.assert_allclose(mixture.predict_proba(table), mixture.responsibilities_)
    best = mixture.responsibilities_.to_numpy().argmax(axis=1)
    assert (mixture.predict(table) == best).all()


def test_all_patterns_have_probability_one():
    table = pd.DataFrame({"a": ["x", "y", None, "x"], "b": [1, 2, 3, None], "c": [0, 1, 1, 0]})
    found = bc.MDPD(2, n_init=2).fit(table)
    patterns = pd.DataFrame(
        itertools.product(["x", "y", None], [1, 2, 3, None], [0, 1]), columns=["a", "b", "c"]
    )
    log_likelihood = found.score_samples(patterns, missing=True)
    assert np.exp(log_likelihood).sum() == pytest.approx(1)
    # Without the pattern of missing entries: one for each pattern.
    complete = patterns.dropna()
    assert np.exp(found.score_samples(complete)).sum() == pytest.approx(1)


def test_a_feature_that_is_never_or_always_present():
    ann = bc.Annotations.from_codes(
        *(np.array([0, 1, 2]), np.array([0, 0, 0]), np.array([0, 1, 1])),
        tasks=3,
        workers=["busy", "silent"],
        classes=2,
    )
    found = bc.MDPD(1, n_init=1).fit(ann)
    np.testing.assert_allclose(found.observed_rate_, [1, 0])
    np.testing.assert_allclose(
        found.score_samples(ann, missing=True), found.score_samples(ann), atol=1e-9
    )
    assert found.sample(5).features["silent"].isna().all()


# Recovery.


def test_recovers_a_mixture():
    table, kind = mixed_table(4000, seed=1)
    found = bc.MDPD(2, n_init=3).fit(table)
    # Shares of 4,000 items have a standard error of .0075; the labels are not certain, hence 5.
    assert abs(found.weights_[1] - kind.mean()) < 5 * np.sqrt(0.35 * 0.65 / 4000)
    for f, value in (("f0", "v0"), ("f2", "v3"), ("f4", "v1")):
        for component in (0, 1):
            seen = table.loc[kind == component, f].dropna()
            assert abs(found.profiles_.loc[(f, value), component] - (seen == value).mean()) < 0.05


def test_bic_finds_the_number_of_components():
    table = mixed_table(1500, seed=1)[0]
    bic = {k: bc.MDPD(k, n_init=3).fit(table).bic_ for k in (1, 2, 3)}
    assert min(bic, key=bic.get) == 2


def test_samples_follow_the_mixture(mixture):
    n = 20_000
    drawn = mixture.sample(n, seed=3)
    assert list(drawn.features.columns) == list(mixture.features_)
    share = (drawn.components == 0).mean()
    assert abs(share - mixture.weights_[0]) < 4 * np.sqrt(0.25 / n)
    missing = drawn.features["f1"].isna().mean()
    assert abs(missing - (1 - mixture.observed_rate_["f1"])) < 4 * np.sqrt(0.25 / n)
    chosen = drawn.features.loc[drawn.components == 0, "f2"].dropna()
    for value in ("v0", "v1", "v2", "v3"):
        chance = mixture.profiles_.loc[("f2", value), 0]
        assert abs((chosen == value).mean() - chance) < 4 * np.sqrt(0.25 / len(chosen))
    pd.testing.assert_frame_equal(drawn.features, mixture.sample(n, seed=3).features)


# Goodness of fit.


def test_marginals_whose_product_underflows():
    # Two equal coins have the entropy of one in common. Component 0 holds half of each item with
    # heads and hardly any tails, P(tails | 0) = 2e-200, whose square is zero in double precision.
    coins = as_feature_table(np.repeat([[0, 0], [1, 1]], 2, axis=0))
    trace = np.array([0.5, 0.5, 1e-200, 1e-200])
    by_component = conditional_mutual_information(
        coins, np.column_stack([trace, 1 - trace])
    ).by_component[:, 0, 1]
    share = trace.sum() / 4
    tails = 2e-200
    expected = share * (tails - tails * np.log(tails))  # -(1 - p) log(1 - p) is p
    assert by_component[0] == pytest.approx(expected, rel=1e-9)
    # Component 1 holds a third of its items with heads and two thirds with tails.
    entropy = -(np.log(1 / 3) / 3 + 2 * np.log(2 / 3) / 3)
    assert by_component[1] == pytest.approx((1 - share) * entropy, rel=1e-12)


@pytest.mark.filterwarnings("ignore::bayescrowd.mixture.vote_start.WorseThanVotesWarning")
@pytest.mark.parametrize("estimator", [bc.MDPD, bc.StagewiseEM])
def test_lack_of_fit_of_a_maximum_likelihood_fit_is_finite(estimator):
    # Maximum likelihood drives responsibilities to 1e-300, as it does on real crowds.
    ann = bc.simulate.crowd(200, 30, 3, labels_per_task=8, seed=0).annotations
    options = {"n_init": 1} if estimator is bc.MDPD else {"refine": True}
    found = estimator(3, pseudo_counts=0, **options).fit(ann)
    responsibilities = found.responsibilities_.to_numpy()
    assert responsibilities[responsibilities > 0].min() < 1e-160
    assert np.isfinite(found.lack_of_fit_)
    # A little smoothing changes the fit little, and what it leaves over no more.
    smooth = estimator(3, pseudo_counts=0.01, **options).fit(ann)
    assert found.lack_of_fit_ == pytest.approx(smooth.lack_of_fit_, rel=0.05)


def test_a_lack_of_fit_that_is_not_infinite_can_be_tested():
    ann = bc.simulate.crowd(200, 30, 3, labels_per_task=8, seed=0).annotations.to_frame()
    copied = ann[ann["worker"] == 0].assign(worker="copy")
    found = bc.MDPD(3, pseudo_counts=0, n_init=1).fit(
        pd.concat([ann, copied]).astype({"worker": str})
    )
    result = found.goodness_of_fit(n_bootstrap=19)
    assert np.isfinite([result.lack_of_fit, result.expected]).all()
    assert result.p_value == 0.05
    assert set(result.pairs.loc[0, ["feature", "other"]]) == {"0", "copy"}


def test_lack_of_fit_of_one_component_is_the_sum_of_pairs():
    table = mixed_table(200)[0]
    found = bc.MDPD(1, n_init=1).fit(table)
    pairs = bc.pairwise_mutual_information(table).to_numpy()
    assert found.lack_of_fit_ == pytest.approx(np.triu(pairs).sum())
    np.testing.assert_allclose(found.unexplained(), pairs, atol=1e-14)


def test_bootstrap_accepts_the_truth_and_refuses_a_component_too_few():
    table = mixed_table(500, seed=4)[0]
    right = bc.MDPD(2, n_init=3).fit(table).goodness_of_fit(n_bootstrap=39)
    wrong = bc.MDPD(1, n_init=1).fit(table).goodness_of_fit(n_bootstrap=39)
    assert right.p_value > 0.05
    assert wrong.p_value == pytest.approx(1 / 40)
    assert wrong.lack_of_fit > 2 * wrong.expected


def test_bootstrap_names_the_pair_that_is_not_explained():
    table = mixed_table(500, seed=5)[0]
    copied = table.assign(twin=table["f7"])
    result = bc.MDPD(2, n_init=3).fit(copied).goodness_of_fit(n_bootstrap=19)
    assert result.p_value == pytest.approx(1 / 20)
    assert result.pairs.loc[0, ["feature", "other"]].to_list() == ["f7", "twin"]
    assert result.pairs["z"].is_monotonic_decreasing
    assert len(result.pairs) == 9 * 8 / 2


def test_bootstrap_does_not_mind_who_meets_whom():
    # Workers in two shifts that never meet: their absences depend, their labels do not.
    rng = np.random.default_rng(6)
    table = rng.integers(2, size=(200, 6)).astype(float)
    table[:100, :3] = np.nan
    table[100:, 3:] = np.nan
    found = bc.MDPD(1, n_init=1).fit(table)
    assert found.lack_of_fit_ > 1
    assert found.goodness_of_fit(n_bootstrap=39).p_value > 0.05


# Protocol and bad input.


def test_parameters_follow_scikit_learn():
    model = bc.MDPD(3, seed=4)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        model.predict(np.eye(2))
    with pytest.raises(NotFittedError):
        _ = model.lack_of_fit_


def test_says_when_it_has_not_settled():
    with pytest.warns(ConvergenceWarning, match="n_iter=2"):
        bc.MDPD(2, n_init=1, n_iter=2).fit(mixed_table()[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components=0"),
        ({"init": "k-means"}, "init='k-means'"),
        ({"init": np.ones((3, 2))}, r"init has shape \(3, 2\)"),
        ({"init": np.ones((4, 2))}, "sum to 1"),
        ({"prior": "flat"}, "prior='flat'"),
        ({"pseudo_counts": -1}, "pseudo_counts=-1"),
        ({"n_init": 0}, "n_init=0"),
        ({"tol": -1.0}, "tol=-1"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        bc.MDPD(2).set_params(**options).fit(np.eye(4))


def test_bad_calls(mixture):
    with pytest.raises(ValueError, match="value 'v9' of feature 'f0'"):
        mixture.predict(pd.DataFrame({"f0": ["v9"]}))
    with pytest.raises(ValueError, match="n=0"):
        mixture.sample(0)
    with pytest.raises(ValueError, match="n_bootstrap=0"):
        mixture.goodness_of_fit(n_bootstrap=0)


def test_feature_tables_are_taken_as_they_are(mixture):
    table = as_feature_table(mixed_table()[0])
    np.testing.assert_allclose(mixture.predict_proba(table), mixture.responsibilities_)
