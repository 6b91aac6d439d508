"""One call from labels to draws: groups, ids, determinism, edges and refusals."""

import itertools

import jax
import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.models import access_path, dawid_skene, judgements, naive_bayes, one_coin
from bayescrowd.posterior import chains, mode_search, sample
from bayescrowd.posterior.container import group_names, group_of, load, save
from bayescrowd.posterior.convergence import Verdict

SMALL = bc.Annotations.from_matrix([["a", "a"], ["b", "b"]])


def again(awkward, **options):
    """The posterior of the fixture's labels, in its compiled form."""
    return bc.sample_posterior(
        dawid_skene, awkward[0], **{"chains": 3, "draws": 1000, "seed": 1, **options}
    )


# The result


def test_all_groups_are_there(post):
    assert set(group_names(post)) == {
        *("posterior", "label_posterior", "sample_stats", "alignment", "log_likelihood"),
        *("prior", "prior_predictive", "posterior_predictive", "observed_data", "constant_data"),
    }


def test_draws_are_named_by_the_users_ids(post, awkward):
    ann, _ = awkward
    group = group_of(post, "posterior")
    assert group["prevalence"].dims == ("chain", "draw", "cls")
    assert group["confusion"].dims == ("chain", "draw", "worker", "cls", "observed")
    assert group["confusion"].shape == (3, 1000, 8, 3, 3)
    for dim, ids in (("worker", ann.workers), ("cls", ann.classes), ("observed", ann.classes)):
        assert list(group.indexes[dim]) == list(ids)
    np.testing.assert_allclose(group["confusion"].sum("observed"), 1, rtol=1e-5)


def test_label_posterior_is_in_the_order_of_the_labels(post, awkward):
    ann, truth = awkward
    table = bc.label_posterior(post)
    assert list(table.index) == list(ann.tasks)
    assert list(table.columns) == list(ann.classes)
    np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-5)
    # 85 % right answers of five workers: two wrong tasks in 39 would be rare
    assert (table.idxmax(axis=1) == truth)[:39].sum() >= 36


def test_a_task_without_labels_has_the_prevalence(post):
    prevalence = group_of(post, "posterior")["prevalence"].mean(["chain", "draw"])
    np.testing.assert_allclose(bc.label_posterior(post).iloc[39], prevalence, rtol=1e-4)


def test_a_worker_without_labels_has_the_prior(post):
    confusion = group_of(post, "posterior")["confusion"].sel(worker=7).to_numpy()
    expected = np.where(np.eye(3, dtype=bool), 0.6, 0.2)
    # independent draws: a share of mean m has variance m (1 - m) / 9 with eight pseudo-labels
    error = np.sqrt(expected * (1 - expected) / 9 / 1200)
    np.testing.assert_array_less(np.abs(confusion.mean(axis=(0, 1)) - expected), 4 * error)


def test_one_label_moves_one_row_a_little(post):
    confusion = group_of(post, "posterior")["confusion"].mean(["chain", "draw"]).sel(worker=6)
    rows = confusion.to_numpy()
    assert 0.6 < rows.diagonal().max() < (4.8 + 1) / 9 + 0.03
    assert (rows.diagonal() > 0.55).all()


def test_an_unused_class_is_rare_and_nothing_breaks(post):
    table = bc.label_posterior(post)
    assert table["maybe"][:39].max() < 0.5
    assert np.isfinite(group_of(post, "log_likelihood")["labels"]).all()


def test_log_likelihoods_sum_to_the_total(post):
    total = group_of(post, "log_likelihood")["labels"].sum("task")
    statistics = group_of(post, "sample_stats")["marginal_log_likelihood"]
    np.testing.assert_allclose(total, statistics, rtol=1e-4)


def test_predictive_draws_look_like_labels(post, awkward):
    ann, _ = awkward
    for name in ("prior_predictive", "posterior_predictive"):
        label = group_of(post, name)["label"]
        assert label.dims == ("chain", "draw", "judgement")
        assert label.sizes["judgement"] == ann.n_labels
        assert set(np.unique(label)) <= {0, 1, 2}
    drawn = group_of(post, "posterior_predictive")
    assert set(drawn.indexes["draw"]) <= set(range(1000))


def test_results_survive_a_file(post, tmp_path):
    save(post, tmp_path / "fit.nc")
    loaded = load(tmp_path / "fit.nc")
    pd.testing.assert_frame_equal(bc.label_posterior(loaded), bc.label_posterior(post))
    assert loaded.attrs["model"] == "dawid_skene"
    assert str(bc.diagnose(loaded)) == str(bc.diagnose(post))


def test_chains_share_a_device_and_differ(post):
    assert jax.local_device_count() < 3
    first, second, third = group_of(post, "posterior")["prevalence"].to_numpy()
    assert not np.array_equal(first, second)
    assert not np.array_equal(second, third)


# The model and the method


@pytest.mark.parametrize("name", bc.models.catalogue("labels"))
def test_gibbs_is_the_default_where_there_is_one(name, monkeypatch):
    class Asked(Exception):
        """Carries the method."""

    def ask(model, method, **_):
        assert model is getattr(bc.models, name)
        raise Asked(method)

    monkeypatch.setattr(sample, "_kernel", ask)
    expected = "gibbs" if getattr(bc.models, name).FACTS.has_conditionals else "nuts"
    with pytest.raises(Asked, match=expected):
        bc.sample_posterior(name, SMALL)
    with pytest.raises(Asked, match="svi"):
        bc.sample_posterior(getattr(bc.models, name), SMALL, "svi")


def test_a_model_can_be_named(post, awkward):
    same = bc.sample_posterior("dawid_skene", awkward[0], chains=3, draws=1000, seed=1)
    assert group_of(same, "posterior").equals(group_of(post, "posterior"))


# Determinism


def test_the_seed_decides(post, awkward):
    same = again(awkward)
    for name in group_names(post):
        assert group_of(same, name).equals(group_of(post, name))
    other = again(awkward, seed=2)
    assert not group_of(other, "posterior").equals(group_of(post, "posterior"))


def test_the_clock_does_not_decide(post, awkward, monkeypatch):
    # blocks that never have the same number of draws, as on a busy machine
    sizes = itertools.cycle([7, 1, 50, 23])
    monkeypatch.setattr(chains, "_block_size", lambda _: next(sizes))
    same = again(awkward)
    for name in ("posterior", "label_posterior", "sample_stats", "log_likelihood"):
        assert group_of(same, name).equals(group_of(post, name))


def test_tables_and_row_order_make_no_difference(post, awkward):
    frame = awkward[0].to_frame().sample(frac=1, random_state=0)
    from_table = bc.Annotations.from_frame(frame, classes=["maybe", "no", "yes"])
    assert from_table.n_labels == awkward[0].n_labels  # ids without labels are gone, though
    shuffled = bc.Annotations.from_codes(
        *(codes[::-1] for codes in (awkward[0].task_codes, awkward[0].worker_codes)),
        awkward[0].label_codes[::-1],
        tasks=awkward[0].tasks,
        workers=awkward[0].workers,
        classes=awkward[0].classes,
    )
    same = again((shuffled, None))
    assert group_of(same, "posterior").equals(group_of(post, "posterior"))


# Starts, label switching, interruption


def test_a_point_estimate_can_be_the_start(awkward):
    probas = bc.DawidSkene().fit(awkward[0]).probas_
    started = again(awkward, init=probas, warmup=0)
    assert (bc.label_posterior(started).idxmax(axis=1) == awkward[1])[:39].sum() >= 36


def test_mirrored_chains_are_renamed_and_reported(post, awkward, monkeypatch):
    run_chains = sample.run_chains

    def mirrored(*arguments, **options):
        """The same chains, of which the second calls 'yes' what the others call 'no'."""
        drawn = run_chains(*arguments, **options)
        swapped = [0, 2, 1]
        drawn.params["prevalence"][1] = drawn.params["prevalence"][1][:, swapped]
        drawn.params["confusion"][1] = drawn.params["confusion"][1][:, :, swapped]
        drawn.agreement[1] = drawn.agreement[1][:, swapped]
        drawn.label_mean[1] = drawn.label_mean[1][:, swapped]
        return drawn

    monkeypatch.setattr(sample, "run_chains", mirrored)
    with pytest.warns(UserWarning, match="classes of chain 1 were renamed to agree with the crowd"):
        repaired = again(awkward)
    assert group_of(repaired, "alignment")["is_renamed"].to_numpy().tolist() == [False, True, False]
    for name in ("posterior", "label_posterior", "posterior_predictive"):
        assert group_of(repaired, name).equals(group_of(post, name))
    assert "Do not trust these draws: label switching" in bc.diagnose(repaired).verdict


@pytest.mark.filterwarnings("ignore:label switching")
def test_spammers_are_reported(awkward):
    labels = awkward[0]
    noise = np.random.default_rng(0).integers(1, 3, size=labels.n_labels)
    spam = bc.Annotations.from_codes(
        labels.task_codes,
        labels.worker_codes,
        noise,
        tasks=labels.tasks,
        workers=labels.workers,
        classes=labels.classes,
    )
    with pytest.warns(UserWarning, match="hardly better than guessing"):
        again((spam, None))


def test_ctrl_c_returns_the_draws_so_far(awkward, monkeypatch):
    calls = 0
    advance = chains._advance_chains

    def interrupted(*arguments, **options):
        nonlocal calls
        calls += 1
        # The 200 draws of the warm-up come as 1, 1, 50, 50, 50 and 48; then come blocks of 50.
        if calls > 8:
            raise KeyboardInterrupt
        return advance(*arguments, **options)

    monkeypatch.setattr(chains, "_advance_chains", interrupted)
    monkeypatch.setattr(chains, "BLOCK_SECONDS", 1e9)
    with pytest.warns(UserWarning, match="interrupted after 100 of 1000 draws"):
        part = again(awkward)
    assert group_of(part, "posterior").sizes["draw"] == 100
    assert part.attrs["is_complete"] == 0


def test_ctrl_c_before_the_first_draw_is_passed_on(awkward, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(chains, "_advance_chains", interrupted)
    with pytest.raises(KeyboardInterrupt):
        again(awkward)


# Bad input


BAD = [
    ({"draws": 0}, ValueError, "draws=0: expected at least 1"),
    ({"chains": 0}, ValueError, "chains=0: expected at least 1"),
    ({"warmup": -1}, ValueError, "warmup=-1: expected at least 0"),
    ({"method": "hmc"}, ValueError, "method='hmc': expected one of gibbs, nuts"),
    ({"init": "zero"}, ValueError, "init='zero': expected 'votes', 'random' or a DataFrame"),
    ({"init": pd.DataFrame({"a": [1.0]})}, ValueError, "a probability for each task and class"),
    ({"init": pd.DataFrame(np.nan, SMALL.tasks, SMALL.classes)}, ValueError, "a probability for"),
    ({"init": pd.DataFrame(0.0, SMALL.tasks, SMALL.classes)}, ValueError, "a probability for"),
    ({"prior": dawid_skene.Prior(prevalence=0.0)}, ValueError, "prior.prevalence=0.0: expected"),
    ({"prior": dawid_skene.Prior(prevalence=1e-60)}, ValueError, "gives no distribution"),
    ({"prior": dawid_skene.Prior(prevalence=float("nan"))}, ValueError, "prior.prevalence=nan"),
    ({"prior": dawid_skene.Prior(accuracy=float("inf"))}, ValueError, "prior.accuracy=inf"),
    ({"prior": dawid_skene.Prior(prevalence=-1.0)}, ValueError, "prior.prevalence=-1.0: exp"),
    ({"prior": dawid_skene.Prior(accuracy=1.5)}, ValueError, "prior.accuracy=1.5: expected"),
    ({"target_accept": 0.9}, ValueError, "target_accept is for 'nuts', which adapts a step size"),
    ({"target_accept": 1.0, "method": "nuts"}, ValueError, "target_accept=1.0: expected"),
    ({"chain_method": "queues"}, ValueError, "chain_method='queues': expected one of seq"),
    ({"chain_method": "parallel"}, ValueError, "deals 4 chains evenly to several devices, and JAX"),
    ({"chain_method": "vectorized", "method": "svi"}, ValueError, "'svi' makes one fit after"),
    ({"n_predictive": -1}, ValueError, "n_predictive=-1: expected at least 0"),
    ({"gold": ["a"]}, TypeError, "gold came as list|gold="),
    ({"prior": one_coin.Prior()}, TypeError, "expected bayescrowd.models.dawid_skene.Prior"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD)
def test_wrong_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        bc.sample_posterior(dawid_skene, SMALL, **options)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (None, TypeError, "`model` is None; expected a module of `bayescrowd.models` or its name"),
        (
            bc.metrics,
            TypeError,
            "`model` is bayescrowd.metrics, which is not a model",
        ),
        ("probit", ValueError, "there is no model 'probit'; expected ability_dawid_skene, "),
        (judgements, TypeError, "a model of numbers, not of classes; call the method `posterior`"),
    ],
)
def test_what_is_not_a_model_of_classes_is_refused(model, error, message):
    with pytest.raises(error, match=message):
        bc.sample_posterior(model, SMALL)


FEATURES = pd.DataFrame({"colour": ["red", "blue"], "size": ["s", "l"]}, index=["i", "j"])
TARGET = pd.Series({"i": "a", "j": "b"})
TABLE = bc.TableDataset(FEATURES, TARGET, "", "tiny", "")
MISMATCHES = [
    (dawid_skene, TABLE, {}, TypeError, "dawid_skene models crowd labels and got a table of feat"),
    (dawid_skene, FEATURES, {}, ValueError, "column 'task'"),
    (dawid_skene, SMALL, {"target": TARGET}, ValueError, "target is for models of features"),
    (dawid_skene, SMALL, {"groups": "worker"}, ValueError, "groups is for models of features"),
    (naive_bayes, SMALL, {}, TypeError, "features came as Annotations"),
    (naive_bayes, SMALL.to_frame(), {}, TypeError, "columns label, task, worker and a row per"),
    (access_path, SMALL.to_frame(), {}, ValueError, "there is no column 'feature'"),
    (access_path, SMALL, {}, TypeError, "readings came as Annotations"),
    (
        naive_bayes,
        TABLE,
        {"gold": TARGET},
        ValueError,
        "gold is for models of crowd labels",
    ),
    (naive_bayes, TABLE, {"method": "svi"}, ValueError, "'svi' fits models of crowd labels"),
]


@pytest.mark.parametrize(("model", "data", "options", "error", "message"), MISMATCHES)
def test_data_of_other_models_are_refused(model, data, options, error, message):
    with pytest.raises(error, match=message):
        bc.sample_posterior(model, data, **options)


def test_models_without_a_gibbs_sampler_are_refused():
    with pytest.raises(ValueError, match="item_difficulty has no Gibbs sampler, use NUTS"):
        bc.sample_posterior(bc.models.item_difficulty, SMALL, "gibbs")


# Sampling until chains agree


def test_draws_of_a_longer_run_are_evenly_spaced(awkward, monkeypatch):
    monkeypatch.setattr(mode_search.ModeSearch, "judge", lambda *_: Verdict.FEW)
    extended = again(awkward, draws=100, most_draws=800, predictive=False)
    fixed = again(awkward, draws=800, most_draws=800, predictive=False)
    assert (extended.attrs["thin"], fixed.attrs["thin"]) == (8, 1)
    for name in ("posterior", "sample_stats", "log_likelihood"):
        assert group_of(extended, name).sizes["draw"] == 100
        every_eighth = group_of(fixed, name).isel(draw=slice(7, None, 8))
        for variable, values in group_of(extended, name).items():
            np.testing.assert_array_equal(values, every_eighth[variable])
    # all draws are averaged, kept or not
    np.testing.assert_allclose(bc.label_posterior(extended), bc.label_posterior(fixed), atol=1e-6)


def test_chains_that_disagree_start_anew_and_jump_whatever_the_clock_says(awkward, monkeypatch):
    def sampled():
        verdicts = iter([Verdict.APART, Verdict.FEW, Verdict.CONVERGED])
        monkeypatch.setattr(mode_search.ModeSearch, "judge", lambda *_: next(verdicts))
        return again(awkward, draws=100, most_draws=10_000, predictive=False)

    post = sampled()
    # 200 to warm up and 100 draws that were apart, then 200 to warm up again
    assert (post.attrs["thin"], post.attrs["warmup"]) == (4, 500)
    sizes = itertools.cycle([7, 1, 50, 23])
    monkeypatch.setattr(chains, "_block_size", lambda _: next(sizes))
    same = sampled()
    for name in group_names(post):
        assert group_of(same, name).equals(group_of(post, name))


def test_fewer_draws_at_most_than_are_kept_are_refused(awkward):
    with pytest.raises(ValueError, match="most_draws=99: expected at least draws=100"):
        again(awkward, draws=100, most_draws=99)
