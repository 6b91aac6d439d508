"""Draws of features as users read them: names, hidden values that swap theirs, results in files."""

import arviz as az
import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.models import access_path, naive_bayes
from bayescrowd.posterior.chains import Recording
from bayescrowd.posterior.container import assemble, group_names, group_of, load, save
from bayescrowd.posterior.feature_adapter import feature_problem

N_CHAINS, N_DRAWS = 2, 300


def long_table(seed, *, n_items=60, noise=0.25):
    """Two features, whose values go with the class, each read by three workers."""
    rng = np.random.default_rng(seed)
    target = pd.Series(rng.choice(["bad", "good"], size=n_items), index=range(100, 100 + n_items))
    rows = []
    for item, cls in target.items():
        for feature, values in (("colour", ["blue", "red"]), ("size", ["l", "m", "s"])):
            z = (cls == "good") * (len(values) - 1) if rng.random() < 0.8 else 0
            for worker in ("ann", "bob", "eve"):
                x = z if rng.random() > noise else rng.integers(len(values))
                rows.append((item, feature, worker, values[x]))
    return pd.DataFrame(rows, columns=["item", "feature", "worker", "value"]), target


def problem(**options):
    data, target = long_table(0)
    options = {"target": target, "classes": None, "groups": "shared", **options}
    return feature_problem(access_path, data, access_path.Prior(), **options)


def recording(problem, seed=0):
    """Draws that scatter around tables in which workers are mostly right; NumPy's."""
    rng = np.random.default_rng(seed)
    shape = (N_CHAINS, N_DRAWS)
    conditional, confusion = np.zeros((*shape, 2, 2, 3)), np.zeros((*shape, 2, 1, 3, 3))
    for f, width in enumerate((2, 3)):
        for cls in range(2):
            rows = np.where(np.arange(width) == cls * (width - 1), 60.0, 10.0)
            conditional[:, :, f, cls, :width] = rng.dirichlet(rows, size=shape)
        for z in range(width):
            rows = np.where(np.arange(width) == z, 60.0, 10.0)
            confusion[:, :, f, 0, z, :width] = rng.dirichlet(rows, size=shape)
    log_likelihood = rng.normal(-3, 0.1, size=(*shape, problem.sizes.n_items))
    known = np.eye(2)[np.asarray(problem.data.target)]
    agreement = np.tile(np.diag(known.sum(axis=0)), (*shape, 1, 1))
    return Recording(
        params={
            "prevalence": rng.dirichlet([30.0, 30.0], size=shape),
            "conditional": conditional,
            "confusion": confusion,
        },
        statistics={"log_likelihood": log_likelihood.sum(axis=-1)},
        log_likelihood=log_likelihood,
        agreement=agreement,
        label_mean=np.tile(known, (N_CHAINS, 1, 1)),
        is_complete=True,
    )


def switched(drawn, chain, draws, order):
    """The same draws, of which some have the values of the feature 'size' in another order."""
    params = {name: values.copy() for name, values in drawn.params.items()}
    rows = params["conditional"][chain, draws, 1]
    params["conditional"][chain, draws, 1] = rows[..., order]
    rows = params["confusion"][chain, draws, 1]
    params["confusion"][chain, draws, 1] = rows[:, :, order]
    return drawn._replace(params=params)


# Names


def test_tables_are_named_and_not_padded():
    datasets, found = problem().datasets(recording(problem()))
    assert found == []
    group = datasets["posterior"]
    assert group["conditional"].dims == ("chain", "draw", "cls", "feature_value")
    pairs = ["colour=blue", "colour=red", "size=l", "size=m", "size=s"]
    assert list(group.indexes["feature_value"]) == pairs
    assert group["confusion"].dims == ("chain", "draw", "group", "answer")
    assert group.sizes["answer"] == 4 + 9
    drawn = recording(problem()).params
    np.testing.assert_array_equal(
        group["conditional"].sel(cls="good", feature_value="size=m"),
        drawn["conditional"][:, :, 1, 1, 1],
    )
    np.testing.assert_array_equal(
        group["confusion"].sel(group="all", answer="size: m -> s"),
        drawn["confusion"][:, :, 1, 0, 1, 2],
    )
    by_feature = group["channel"].groupby("feature").sum()
    np.testing.assert_allclose(by_feature, 1)


def test_channels_by_hand():
    group = problem().datasets(recording(problem()))[0]["posterior"]
    values = group.sel(cls="bad", group="all")
    expected = sum(
        group["conditional"].sel(cls="bad", feature_value=f"colour={z}").to_numpy()
        * group["confusion"].sel(group="all", answer=f"colour: {z} -> red").to_numpy()
        for z in ("blue", "red")
    )
    np.testing.assert_allclose(values["channel"].sel(feature_value="colour=red"), expected)


# Hidden values


def test_a_chain_with_other_names_is_renamed_and_reported():
    drawn = recording(problem())
    straight, _ = problem().datasets(drawn)
    turned, found = problem().datasets(switched(drawn, 1, slice(None), [1, 2, 0]))
    assert len(found) == 1
    assert "hidden values of size were renamed in some chains" in found[0]
    for name in ("conditional", "confusion", "channel"):
        np.testing.assert_allclose(turned["posterior"][name], straight["posterior"][name])
    report = turned["value_alignment"]
    assert report["is_renamed"].sel(feature="size").to_numpy().tolist() == [False, True]
    assert not report["is_renamed"].sel(feature="colour").any()


def test_draws_that_swap_are_reported_and_do_not_alarm():
    drawn = recording(problem())
    mixed, found = problem().datasets(switched(drawn, 0, slice(0, 90), [1, 0, 2]))
    assert len(found) == 1
    assert "do not tell the hidden values of size apart; do not average" in found[0]
    unstable = mixed["value_alignment"]["unstable"].sel(feature="size").to_numpy()
    np.testing.assert_allclose(unstable, [0.3, 0.0], atol=0.01)
    diagnosis = bc.diagnose(assemble(mixed))
    assert diagnosis.is_trustworthy, diagnosis.verdict
    assert set(diagnosis.table.index) == {"prevalence", "channel", "marginal_log_likelihood"}
    # had it looked at the tables, it would have objected
    tables = mixed["posterior"]["conditional"].sel(feature_value="size=l", cls="bad")
    assert float(az.rhat(np.asarray(tables))) > 1.05


def test_groups_of_one_data_set_can_be_compared():
    shared, apart = problem(), problem(groups={"ann": 1, "bob": 1, "eve": 1})
    table = bc.compare(
        {
            name: assemble(one.datasets(recording(one, seed))[0])
            for name, seed, one in (("shared", 0, shared), ("grouped", 1, apart))
        }
    )
    assert set(table.index) == {"shared", "grouped"}


# A mixture


def test_classes_of_which_none_is_known_are_named_after_the_first_chain():
    data, _ = long_table(0)
    mixture = feature_problem(
        access_path, data, access_path.Prior(), target=None, classes=["a", "b"], groups="shared"
    )
    drawn = recording(problem())
    drawn.label_mean[1] = drawn.label_mean[1][:, ::-1]
    drawn.params["prevalence"][1] = drawn.params["prevalence"][1][:, ::-1]
    before = drawn.params["prevalence"][1].copy()
    datasets, found = mixture.datasets(drawn)
    assert "those of chain 1 were renamed after those of the first chain" in found[0]
    np.testing.assert_array_equal(datasets["posterior"]["prevalence"][1], before[:, ::-1])
    probability = datasets["label_posterior"]["probability"].to_numpy()
    np.testing.assert_array_equal(probability[0], probability[1])
    assert "alignment" not in datasets


# From data to results


@pytest.fixture(scope="module")
def post():
    """Naive Bayes on features of which one is missing, the classes of twenty items hidden."""
    data, target = long_table(1, noise=0.0)
    first = data.groupby(["item", "feature"])["value"].first().unstack()
    first.iloc[3, 0] = None
    hidden = target.copy()
    hidden.iloc[40:] = None
    sampled = bc.sample_posterior(
        naive_bayes, first, target=hidden, classes=["bad", "good", "unheard"], chains=2, draws=500
    )
    return sampled, target


def test_unknown_classes_are_found(post):
    sampled, target = post
    table = bc.label_posterior(sampled)
    assert list(table.index) == list(target.index)
    assert list(table.columns) == ["bad", "good", "unheard"]
    known = table.iloc[:40]
    assert (known.idxmax(axis=1) == target[:40]).all()
    assert (known.max(axis=1) == 1).all()
    # a class shows its own values in 80 % of the readings, and two features are read
    assert (table.iloc[40:].idxmax(axis=1) == target[40:]).mean() > 0.7


def test_results_are_complete_and_survive_a_file(post, tmp_path):
    sampled, _ = post
    assert set(group_names(sampled)) == {
        *("posterior", "label_posterior", "sample_stats", "alignment", "log_likelihood"),
        *("prior", "prior_predictive", "posterior_predictive", "observed_data", "constant_data"),
    }
    predicted = group_of(sampled, "posterior_predictive")["label"]
    assert predicted.sizes["judgement"] == group_of(sampled, "observed_data").sizes["judgement"]
    assert set(np.unique(predicted)) == {0, 1}
    save(sampled, tmp_path / "fit.nc")
    loaded = load(tmp_path / "fit.nc")
    pd.testing.assert_frame_equal(bc.label_posterior(loaded), bc.label_posterior(sampled))
    diagnosis = bc.diagnose(loaded)
    assert diagnosis.is_trustworthy, diagnosis.verdict


@pytest.mark.slow
def test_gibbs_and_nuts_agree_through_channels():
    """Tables may swap the names of hidden values; P(label | class) may not."""
    data, target = long_table(2, n_items=30)
    target.iloc[::4] = None
    options = {"target": target, "groups": "worker", "chains": 2, "predictive": False}
    gibbs, nuts = (
        bc.sample_posterior(access_path, data, method, **options, **lengths)
        for method, lengths in (
            ("gibbs", {"draws": 4000}),
            ("nuts", {"warmup": 300, "draws": 1000}),
        )
    )
    gap = bc.label_posterior(gibbs) - bc.label_posterior(nuts)
    assert np.abs(gap.to_numpy()).max() < 4 * 0.5 * np.sqrt(2 / 400)
    both = [group_of(one, "posterior")["channel"].to_numpy().astype(float) for one in (gibbs, nuts)]
    flat = [values.reshape(*values.shape[:2], -1) for values in both]
    errors = []
    for values in flat:
        ess = [az.ess(np.ascontiguousarray(values[:, :, i])) for i in range(values.shape[2])]
        errors.append(values.std(axis=(0, 1)) / np.sqrt(ess))
    difference = np.abs(flat[0].mean(axis=(0, 1)) - flat[1].mean(axis=(0, 1)))
    # 30 numbers of four features' worth: one band in 500 keys is left
    np.testing.assert_array_less(difference, 4 * np.hypot(*errors))
    for one in (gibbs, nuts):
        assert bc.diagnose(one).rhat < 1.02


# Bad input


def test_priors_that_are_none_are_refused():
    data, target = long_table(0)
    for wrong in ({"conditional": -1.0}, {"wrong": 0.0}):
        (name,) = wrong
        with pytest.raises(ValueError, match=rf"prior\.{name}=.*: expected .* above 0"):
            bc.sample_posterior(access_path, data, target=target, prior=access_path.Prior(**wrong))
    with pytest.raises(ValueError, match=r"prior\.right=nan: expected a finite number"):
        bc.sample_posterior(
            access_path, data, target=target, prior=access_path.Prior(right=float("nan"))
        )
