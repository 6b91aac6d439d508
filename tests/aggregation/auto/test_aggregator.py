"""The default: its figures on public crowds, its promises, and crowds it is meant to survive."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.aggregation.auto import aggregator, pool
from bayescrowd.aggregation.auto.blend import blend_for
from bayescrowd.aggregation.auto.pool import POOL, fit_members
from bayescrowd.aggregation.auto.rater_bootstrap import bootstrap_raters
from bayescrowd.aggregation.shrunken.base import by_class
from bayescrowd.aggregation.votes import vote_shares
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs

SIMPLE = (bc.MajorityVote, bc.OneCoinDawidSkene, bc.DawidSkene)


@pytest.fixture(scope="module")
def data():
    return bc.simulate.crowd(150, 12, 3, labels_per_task=5, accuracy=0.7, spammers=0.2, seed=4)


@pytest.fixture(scope="module")
def fitted(data):
    return bc.AutoAggregator().fit(data.annotations)


# What it is.


def test_the_answer_is_the_tempered_blend_of_its_candidates(data, fitted):
    ann = data.annotations
    pairs = WorkerLabelPairs(ann)
    votes = vote_shares(ann, pairs.fixed)
    fits = fit_members(POOL, pairs, votes, n_iter=50, tol=1e-4)
    weights = fitted.scores_["weight"]
    pool_average = sum(weights[name] * by_class(fit.posterior, 3) for name, fit in fits.items())
    models = [(m.model, m.prior) for m in POOL if m.name in ("pooled", "difficulty")]
    replicates = bootstrap_raters(models, ann, seed=0)
    subtypes = bc.EBCC(n_starts=6, combine="average", n_iter=60, tol=1e-2)
    of_subtypes = subtypes.fit(ann).probas_
    z = fitted.scores_["z"]
    blend = blend_for(12, 750, z["difficulty"] - z.drop("difficulty").max(), replicates.instability)
    candidates = {
        "pool": pool_average,
        "rater bootstrap": replicates.mean,
        "EBCC": of_subtypes.to_numpy(),
        "BWA": bc.BWA().fit(ann).probas_.to_numpy(),
    }
    mixed = sum(blend.weights[name] * candidates[name] for name in candidates)
    smoothed = (ann.votes + 1 / 3) / (ann.labels_per_task[:, None] + 1)
    mixed = (1 - blend.vote_weight) * mixed + blend.vote_weight * smoothed
    warm = mixed ** (1 / blend.temperature)
    np.testing.assert_allclose(fitted.probas_, warm / warm.sum(axis=1, keepdims=True))
    assert fitted.weights_["votes"] == pytest.approx(blend.vote_weight)
    assert fitted.weights_.sum() == pytest.approx(1)
    of_pool = fitted.weights_[[member.name for member in POOL]]
    share = (1 - blend.vote_weight) * blend.weights["pool"]
    np.testing.assert_allclose(of_pool, share * weights)
    assert fitted.temperature_ == blend.temperature
    assert fitted.dependence_.instability == pytest.approx(replicates.instability)


def test_new_tasks_with_the_same_labels_have_nearly_the_same_answer(data, fitted):
    frame = data.annotations.to_frame().assign(task=lambda table: table["task"] + 1000)
    probas = fitted.predict_proba(frame)
    assert (probas.to_numpy().argmax(1) == fitted.probas_.to_numpy().argmax(1)).mean() > 0.95
    # EBCC, which sees all tasks at once, has no part in the answer to new ones.
    without = fitted.weights_["EBCC"]
    assert np.abs(probas.to_numpy() - fitted.probas_).to_numpy().max() < 0.05 + without


def test_scores_and_reasons(fitted):
    scores = fitted.scores_
    assert list(scores.index) == [member.name for member in POOL]
    best = scores["score"].idxmax()
    assert scores.loc[best, "below_best"] == 0
    others = scores.drop(best)
    assert (others["standard_error"] > 0).all()
    np.testing.assert_allclose(others["z"], -others["below_best"] / others["standard_error"])
    assert scores["weight"].sum() == pytest.approx(1)
    start = "Enough labels per worker (median 65): the answer averages models with "
    assert fitted.why_.startswith(start)
    story = next(member.story for member in POOL if member.name == best)
    assert f"Held-out labels are predicted best if {story}. " in fitted.why_
    assert fitted.dependence_.summary in fitted.why_


def test_a_single_task_has_its_reasons():
    alone = bc.AutoAggregator().fit(bc.Annotations.from_matrix([list("aab")]))
    assert alone.labels_.to_list() == ["a"]
    assert ". Held-out labels say nothing about the models." in alone.why_


def test_aggregate_is_the_default_method(data):
    est = bc.aggregate(data.annotations.to_frame(), seed=3)
    assert isinstance(est, bc.AutoAggregator)
    assert est.seed == 3
    again = bc.AutoAggregator(seed=3).fit(data.annotations)
    pd.testing.assert_frame_equal(est.probas_, again.probas_)


# Figures.


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("bluebird", 10.19),
        ("rte", 7.25),
        ("dog", 15.9),
        pytest.param("trec", 29.7, marks=pytest.mark.slow),
    ],
)
def test_errors_on_public_crowds(published, name, error):
    data = published(name)
    model = bc.AutoAggregator().fit(data.annotations)
    assert 100 * bc.metrics.error_rate(model.probas_, data.truth) < error + 0.005


# Raters who err together.


@pytest.mark.parametrize(
    "kind",
    [
        {"n_workers": 9, "misleading": 0.25, "pull": 0.8},
        {"n_workers": 10, "clusters": [5], "copying": 0.6, "accuracy": 0.75},
        {"n_workers": 4, "n_classes": 4, "hard": 0.3},
    ],
    ids=["misleading tasks", "a cluster", "four judges"],
)
def test_panels_are_answered_nearly_as_well_as_by_the_vote_and_more_honestly(kind):
    methods = (bc.AutoAggregator, bc.MajorityVote, bc.DawidSkene)
    parts = []
    for seed in range(3):
        data = bc.simulate.panel(400, **kind, seed=seed)
        fits = [method().fit(data.annotations) for method in methods]
        losses = [bc.metrics.task_losses(fit.probas_, data.truth, least=1e-6) for fit in fits]
        worse = 100 * (losses[0]["error"] - losses[1]["error"])
        parts.append(pd.DataFrame({"worse": worse, "saved": (losses[2] - losses[0])["log_loss"]}))
    found = pd.concat(parts)
    two_errors = 2 * found.std() / np.sqrt(len(found))
    assert found["worse"].mean() - two_errors["worse"] < 3  # points, against the vote
    assert found["saved"].mean() - two_errors["saved"] > 0  # nats, against Dawid-Skene


def test_it_says_that_raters_err_together_and_asks_for_gold():
    rng = np.random.default_rng(1)
    truth, other = rng.integers(0, 2, (2, 300))
    camps = np.stack([truth] * 4 + [other] * 4, axis=1) ^ (rng.random((300, 8)) < 0.05)
    torn = bc.AutoAggregator().fit(bc.Annotations.from_matrix(camps.astype(int)))
    assert torn.dependence_.instability > 0.44
    assert torn.dependence_.effective_votes[1] < 5
    assert "contradict each other" in torn.why_
    assert "buy gold labels" in torn.why_
    calm = bc.AutoAggregator().fit(
        bc.simulate.crowd(300, 40, 2, labels_per_task=7, accuracy=0.85, seed=1).annotations
    )
    assert "gold" not in calm.why_


@pytest.mark.parametrize("name", ["llmbar_vanilla", "lesion", "framing", "zencrowd_us", "temp"])
def test_no_development_crowd_is_surely_three_points_worse_than_the_vote(development_crowd, name):
    ann, truth = development_crowd(name)
    ours, vote = (m().fit(ann).probas_ for m in (bc.AutoAggregator, bc.MajorityVote))
    truth = truth[truth.isin(ann.classes)]
    wrong = []
    for probas in (ours, vote):
        of_task = probas.loc[truth.index].to_numpy()
        leads = of_task >= of_task.max(axis=1, keepdims=True) - 1e-9
        place = probas.columns.get_indexer(truth)
        wrong.append(1 - leads[np.arange(len(truth)), place] / leads.sum(axis=1))
    difference = 100 * (wrong[0] - wrong[1])
    assert difference.mean() - 2 * difference.std() / np.sqrt(len(truth)) < 3


# Gold.


def test_gold_of_a_class_that_nobody_chose_becomes_a_class(data):
    gold = {0: 1, 1: 7, 2: 7}
    est = bc.AutoAggregator().fit(data.annotations, gold)
    assert list(est.classes_) == [0, 1, 2, 7]
    assert est.labels_[[0, 1, 2]].to_list() == [1, 7, 7]
    assert (est.probas_[7].drop([0, 1, 2]) > 0).all()
    assert list(est.predict_proba(data.annotations.to_frame()).columns) == [0, 1, 2, 7]


def test_a_few_gold_labels_do_not_turn_the_answer_over():
    """Without gold the labels are right; random gold of twenty tasks must leave them so."""
    data = bc.simulate.panel(400, 12, misleading=0.2, pull=0.7, accuracy=0.85, seed=3)
    before = bc.metrics.error_rate(bc.aggregate(data.annotations).probas_, data.truth)
    for seed in range(5):
        gold = data.truth.sample(20, random_state=seed)
        probas = bc.aggregate(data.annotations, gold).probas_.drop(gold.index)
        after = bc.metrics.error_rate(probas, data.truth.drop(gold.index))
        # Two standard errors over 380 tasks, if a tenth of them are called otherwise.
        assert after < before + 0.033


# Invariants.


@pytest.mark.parametrize("column", ["task", "label"])
def test_names_of_tasks_and_classes_change_nothing(data, fitted, column):
    frame = data.annotations.to_frame()
    largest = int(frame[column].max())
    renamed = bc.AutoAggregator().fit(frame.assign(**{column: largest - frame[column]}))
    probas = renamed.probas_.to_numpy()
    probas = probas[::-1] if column == "task" else probas[:, ::-1]
    # Sums in another order round differently.
    np.testing.assert_allclose(fitted.probas_, probas, atol=1e-7)


@pytest.mark.parametrize("seed", range(10))
def test_small_crowds_under_other_names_and_in_another_order(seed):
    """Few workers and classes: many tasks look alike, and some classes could change places."""
    rng = np.random.default_rng(seed)
    n_tasks, n_workers, n_classes = rng.integers([2, 1, 2], [20, 5, 4])
    cells = rng.permutation(n_tasks * n_workers)[: rng.integers(n_tasks, n_tasks * n_workers + 1)]
    task, worker = np.divmod(cells, n_workers)
    label = (task + (rng.random(len(task)) < 0.3)) % n_classes
    fits = []
    for names in (
        (n_tasks, n_workers, n_classes),
        map(rng.permutation, (n_tasks, n_workers, n_classes)),
    ):
        tasks, workers, classes = (np.arange(n) if np.ndim(n) == 0 else n for n in names)
        frame = pd.DataFrame(
            {"task": tasks[task], "worker": workers[worker], "label": classes[label]}
        )
        ann = bc.Annotations.from_frame(
            frame.sample(frac=1, random_state=seed), classes=range(n_classes)
        )
        probas = bc.AutoAggregator(n_iter=8).fit(ann).probas_
        fits.append(probas.loc[tasks[np.unique(task)], classes].to_numpy())
    np.testing.assert_allclose(*fits, atol=1e-7)


@pytest.mark.parametrize("counts", [(3, 3, 3), (4, 4, 1), (7, 7, 6), (2, 2, 0)])
def test_order_does_not_matter_where_classes_could_change_places(counts):
    """One worker and as many tasks of two classes: half of the tasks look like the others."""
    label = np.repeat([0, 1, 2], counts)
    n_tasks = len(label)
    answers = []
    for order in (np.arange(n_tasks), np.random.default_rng(0).permutation(n_tasks)):
        ann = bc.Annotations.from_matrix(label[order][:, None], classes=range(3))
        answers.append(bc.AutoAggregator().fit(ann).probas_.to_numpy()[np.argsort(order)])
    np.testing.assert_allclose(*answers, atol=1e-7)


def test_models_that_predict_equally_well_keep_their_prior_weights():
    """Two tasks with one label each: models differ by rounding only."""
    ann = bc.Annotations.from_frame(
        pd.DataFrame({"task": [0, 1], "worker": [1, 0], "label": [2, 0]}), classes=range(3)
    )
    scores = bc.AutoAggregator().fit(ann).scores_
    assert (scores["standard_error"] < 1e-12).any()
    assert (scores.loc[scores["standard_error"] < 1e-12, "z"] == 0).all()


def test_a_large_crowd_is_judged_by_a_sample(monkeypatch):
    data = bc.simulate.crowd(1200, 20, 2, labels_per_task=5, accuracy=0.75, seed=2)
    whole = bc.AutoAggregator().fit(data.annotations)
    for module in (pool, aggregator):
        monkeypatch.setattr(module, "LARGE", 3000)
    monkeypatch.setattr(pool, "CHOICE_LABELS", 1500)
    monkeypatch.setattr(aggregator, "VERY_LARGE", 4000)
    frame = data.annotations.to_frame()
    sampled = bc.AutoAggregator().fit(frame)
    of_pool = sampled.weights_[[member.name for member in POOL]]
    assert (of_pool > 0).sum() <= pool.MOST_MODELS
    assert "EBCC" not in sampled.weights_.index  # BWA stands in
    assert sampled.weights_["BWA"] > 0
    assert (sampled.labels_ == whole.labels_).mean() > 0.97
    shuffled = frame.assign(worker=99 - frame["worker"], task=5000 - frame["task"])
    other = bc.AutoAggregator().fit(shuffled.sample(frac=1, random_state=0))
    np.testing.assert_allclose(sampled.probas_, other.probas_.iloc[::-1], atol=1e-7)


def test_matrices_are_made_when_they_are_read_and_have_the_likelihood():
    fresh = bc.AutoAggregator(n_iter=2).fit(bc.simulate.crowd(30, 5, seed=0).annotations)
    assert "confusions_" not in vars(fresh)
    rows = fresh.confusions_.to_numpy().reshape(5, 2, 2)
    ann = fresh._annotations
    joint = np.tile(np.log(fresh.priors_.to_numpy()), (30, 1))
    for task, worker, label in zip(ann.task_codes, ann.worker_codes, ann.label_codes, strict=True):
        joint[task] += np.log(rows[worker, :, label])
    expected = np.log(np.exp(joint).sum(axis=1)).sum()
    assert fresh.log_likelihood_ == pytest.approx(expected)


@pytest.mark.slow
def test_wide_crowds_need_no_table_of_workers_by_classes_squared():
    """1,000 workers, 150 classes: their matrices have 22 million entries, the labels are 900."""
    data = bc.simulate.one_coin_crowd(300, 1000, 150, labels_per_task=3, accuracy=0.8, seed=0)
    tracemalloc.start()
    bc.AutoAggregator(n_iter=1).fit(data.annotations)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # What one table of all matrices would take, in bytes.
    assert peak < 8 * 1000 * 150**2 / 2


# The crowds it is meant to survive.


def regret(data, model):
    """Error in points above the best of the simple methods, which takes the truth to choose."""
    errors = [
        100 * bc.metrics.error_rate(method.fit(data.annotations).probas_, data.truth)
        for method in (model, *(simple() for simple in SIMPLE))
    ]
    return errors[0] - min(errors[1:])


@pytest.mark.parametrize(
    "kind",
    [
        "hard negatives",
        pytest.param("adversaries", marks=pytest.mark.slow),
        pytest.param("low sensitivity", marks=pytest.mark.slow),
    ],
)
def test_regret_is_small_on_very_different_crowds(kind):
    rare = {"prevalence": [0.88, 0.12], "labels_per_task": 5, "activity": 0.8}
    if kind == "hard negatives":
        easy = bc.simulate.crowd(1000, 50, 2, accuracy=0.85, concentration=15, **rare, seed=1)
        data = bc.simulate.with_hard_items(easy, share=[0.3, 0.05], pull=0.4, seed=1)
    elif kind == "adversaries":
        data = bc.simulate.crowd(
            600, 40, 2, labels_per_task=7, spammers=0.2, adversaries=0.15, accuracy=0.8, seed=1
        )
    else:
        matrix = np.array([[0.85, 0.15], [0.5, 0.5]])
        confusions = np.tile(matrix, (40, 1, 1))
        data = bc.simulate.full_confusion_crowd(
            800, 40, 2, confusions=confusions, labels_per_task=7, prevalence=[0.6, 0.4], seed=1
        )
    assert regret(data, bc.AutoAggregator()) < 3


def test_models_that_may_collapse_have_little_weight_where_labels_are_few(published, monkeypatch):
    """web with two labels per task: two models put most tasks into the commonest class."""
    web = published("web")
    frame = web.annotations.to_frame().sample(frac=1, random_state=0)
    ann = bc.Annotations.from_frame(frame.groupby("task").head(2), classes=[1, 2, 3, 4, 5])
    pairs = WorkerLabelPairs(ann)
    fits = fit_members(POOL, pairs, vote_shares(ann, pairs.fixed), n_iter=50, tol=1e-4)
    for member in POOL:
        calls = by_class(fits[member.name].posterior, ann.n_classes).mean(axis=0)
        assert (calls.max() > 0.5) == member.may_collapse
        few, many = member.prior_weight(5_000, 2_500), member.prior_weight(50_000, 2_500)
        assert few < 0.1 * member.weight or not member.may_collapse
        assert many > 0.9 * member.weight
    careful = bc.metrics.error_rate(bc.AutoAggregator().fit(ann).probas_, web.truth)
    monkeypatch.setattr(pool, "HALF_LABELS_PER_TASK", 1e-3)
    eager = bc.metrics.error_rate(bc.AutoAggregator().fit(ann).probas_, web.truth)
    # Two standard errors, if the two call one of five of the 2,653 tasks differently.
    assert careful < eager - 0.018


def test_tasks_that_split_the_votes_are_not_all_called_the_rare_class(published):
    """trec without most tasks of class 1: a tenth is of it, and Dawid–Skene calls a third so."""
    trec = published("trec")
    left_out = np.random.default_rng([0, 3]).random(len(trec.truth)) < 0.85
    tasks = trec.truth.index[~(left_out & (trec.truth == 1))]
    ann = trec.annotations.select_tasks(tasks)
    auto_error, coin_error, dawid_skene_error = (
        100 * bc.metrics.error_rate(method.fit(ann).probas_, trec.truth[tasks])
        for method in (bc.AutoAggregator(), bc.OneCoinDawidSkene(tol=0, n_iter=50), bc.DawidSkene())
    )
    assert dawid_skene_error > coin_error + 15
    assert auto_error < coin_error + 4


def test_hard_tasks_warm_the_probabilities():
    easy = bc.simulate.crowd(800, 30, 2, labels_per_task=8, accuracy=0.8, seed=3)
    hard = bc.simulate.with_hard_items(easy, share=0.4, pull=0.5, expertise=0.5, seed=3)
    cool, warm = (bc.AutoAggregator().fit(d.annotations).temperature_ for d in (easy, hard))
    assert 1 <= cool < 1.5 < warm <= 1.8


def test_probabilities_mean_more_than_those_of_dawid_and_skene():
    easy = bc.simulate.crowd(1000, 50, 2, labels_per_task=6, accuracy=0.85, seed=2)
    data = bc.simulate.with_hard_items(easy, share=0.35, pull=0.5, seed=2)
    ours, theirs = (
        method.fit(data.annotations).probas_ for method in (bc.AutoAggregator(), bc.DawidSkene())
    )
    for measure in (bc.metrics.expected_calibration_error, bc.metrics.log_loss):
        assert measure(ours, data.truth) < 0.8 * measure(theirs, data.truth)


def test_bad_parameters():
    with pytest.raises(ValueError, match="n_iter=0: expected at least 1"):
        bc.AutoAggregator(n_iter=0).fit(bc.Annotations.from_matrix([list("ab"), list("bb")]))


def test_workers_look_as_good_as_they_are() -> None:
    crowd = bc.simulate.crowd(1500, 20, 3, labels_per_task=8, accuracy=0.8, seed=5)
    quality = bc.AutoAggregator().fit(crowd.annotations).worker_quality_
    frame = crowd.annotations.to_frame()
    is_right = frame["label"] == frame["task"].map(crowd.truth)
    found = is_right.groupby(frame["worker"]).mean()
    # 600 labels each: what remains are the tasks that are called wrongly, 1 % of them
    assert (quality["accuracy"] - found).abs().max() < 0.03
