"""Every picture draws what it says on the axes that it is given, and leaves pyplot alone."""

import warnings
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import bayescrowd as bc
from bayescrowd import plots
from bayescrowd.budgeted.evaluation.planning import BudgetPlan
from bayescrowd.plots.canvas import BLUE
from bayescrowd.posterior.checks import CrowdChecks
from bayescrowd.posterior.container import assemble, dataset_of


@pytest.fixture(scope="module")
def data():
    return bc.simulate.crowd(
        400, 30, 3, labels_per_task=8, activity=0.5, spammers=0.2, adversaries=0.1, seed=1
    )


@pytest.fixture(scope="module")
def est(data):
    return bc.DawidSkene().fit(data.annotations)


def selection():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(80, 4))
    judgements = truth[:, :, None] + rng.normal(size=(80, 4, 2))
    return bc.MultiSelection(budget=6).fit(judgements, truth @ [2, 1, 1, 0])


TABLE = pd.DataFrame({"accuracy": [0.75, 0.9]}, index=["vote", "EM"])

ERRORS = pd.DataFrame(
    {
        "selector": ["score", "score", "supervised", "supervised"],
        "aggregator": "MV",
        "n_workers": [1, 2, 1, 2],
        "error": [0.3, 0.2, 0.25, 0.2],
    }
)

LOO = pd.DataFrame(
    {"elpd_diff": [0.0, -7.0], "dse": [0.0, 3.0], "weight": [0.9, 0.1], "n_bad": [0, 2]},
    index=["hierarchical_dawid_skene", "one_coin"],
)


@cache
def fitted_default():
    """The default, fitted to a small crowd."""
    return bc.AutoAggregator().fit(bc.simulate.crowd(80, 10, 3, seed=1).annotations)


@cache
def panel_report():
    """A report on a small panel with gold."""
    data = bc.simulate.panel(60, 4, clusters=[2], copying=1.0, accuracy=[0.8] * 4, seed=1)
    return bc.panel_report(data.annotations, data.truth.iloc[:15], most_dropped=2)


@cache
def one_coin_draws():
    """Draws of the one-coin model of six workers, by two chains."""
    rng = np.random.default_rng(0)
    dims = ("chain", "draw", "worker")
    accuracy = rng.beta(8, 2, size=(2, 50, 6))
    prevalence = ("chain", "draw", "cls"), np.full((2, 50, 2), 0.5)
    groups = {
        "posterior": {"prevalence": prevalence, "accuracy": (dims, accuracy)},
        "sample_stats": {"marginal_log_likelihood": (dims[:2], accuracy.sum(axis=2) - 4000)},
        "constant_data": {"worker_code": (("judgement",), np.arange(6).repeat(3))},
    }
    ids = {"worker": [f"worker {k}" for k in range(6)]}
    datasets = {name: dataset_of(group, coords=ids) for name, group in groups.items()}
    return assemble(datasets, attrs={"model": "one_coin"})


@cache
def predictions():
    """Draws of the one-coin model of a small crowd, with predictions."""
    crowd = bc.simulate.crowd(40, 4, accuracy=0.8, seed=0)
    return bc.sample_posterior(
        "one_coin", crowd.annotations, chains=2, draws=40, warmup=20, most_draws=40, progress=False
    )


@cache
def finished_policy():
    """B-LEAFS after its run on a table of berries and peas."""
    rows = [("red", "small", "berry"), ("red", "large", "berry"), ("green", "small", "pea")]
    table = pd.DataFrame(rows * 20, columns=["colour", "size", "kind"])
    policy = bc.BLeafs(bc.FeatureSpace.from_table(table, target="kind"), 30, 1)
    bc.simulate_budget(policy, table, target="kind")
    return policy


def one_row_of_draws():
    """Draws of a row of two probabilities."""
    draws = np.random.default_rng(0).dirichlet([3, 2], size=(2, 100))
    table = {"conditional": (("chain", "draw", "feature_value"), draws)}
    return assemble({"posterior": dataset_of(table, coords={"feature_value": ["x=a", "x=b"]})})


def crowd_checks():
    share = np.linspace(0.1, 0.9, 3)
    table = pd.DataFrame(
        {
            "observed": share,
            "mean": [0.2, 0.5, 0.6],
            "lower": [0.05, 0.4, 0.5],
            "upper": [0.3, 0.6, 0.7],
            "p_value": [0.2, 0.5, 0.0],
        },
        index=["mean", "standard deviation", "share unanimous"],
    )
    return CrowdChecks(table, table, table)


CURVE = pd.DataFrame(
    [
        (name, 2, budget, repeat, 0.4 - budget / 1000 + 0.02 * repeat, budget)
        for name in ("BudgetedSelection", "TsGreedy", "all data")
        for budget in (50, 100, 200)
        for repeat in (0, 1)
    ],
    columns=["policy", "n_features", "budget", "repeat", "error", "spent"],
)

PLAN = BudgetPlan(
    "reached",
    *(80.0, 70.0, 95.0, "", 0.2),
    pd.DataFrame(
        {"gap": [0.1, 0.02, 0.0], "standard_error": 0.01, "monotone": [0.1, 0.02, 0.0]},
        index=pd.Index([50, 100, 200], name="budget"),
    ),
)

SCORES = pd.DataFrame(
    {"MajorityVote": [30.0, 10.0], "DawidSkene": [20.0, 12.0]}, index=["birds", "dogs"]
)

PICTURES = {
    "bench_differences": lambda est, data, ax: plots.bench_differences(
        SCORES[["DawidSkene"]] - 20, SCORES[["DawidSkene"]] / 10, "MajorityVote", ax
    ),
    "bench_scores": lambda est, data, ax: plots.bench_scores(SCORES, ax),
    "budget_curves": lambda est, data, ax: plots.budget_curves(CURVE, ax),
    "budget_plan": lambda est, data, ax: plots.budget_plan(PLAN, ax, within=0.04),
    "attribute_map": lambda est, data, ax: plots.attribute_map(selection(), ax),
    "chain_ranks": lambda est, data, ax: plots.chain_ranks(one_coin_draws(), ax),
    "chain_traces": lambda est, data, ax: plots.chain_traces(one_coin_draws(), ax),
    "confusion_matrix": lambda est, data, ax: plots.confusion_matrix(est, 3, ax),
    "convergence": lambda est, data, ax: plots.convergence(est, ax),
    "credibility_course": lambda est, data, ax: plots.credibility_course(finished_policy(), ax),
    "information_map": lambda est, data, ax: plots.information_map(
        bc.pairwise_mutual_information(data.annotations), ax
    ),
    "label_shares": lambda est, data, ax: plots.label_shares(predictions(), ax),
    "label_uncertainty": lambda est, data, ax: plots.label_uncertainty(est, ax),
    "loo_comparison": lambda est, data, ax: plots.loo_comparison(LOO, ax),
    "loo_pit": lambda est, data, ax: plots.loo_pit(predictions(), ax),
    "method_comparison": lambda est, data, ax: plots.method_comparison(TABLE, ax, reference=0.95),
    "panel_accuracies": lambda est, data, ax: plots.panel_accuracies(panel_report(), ax),
    "panel_agreement": lambda est, data, ax: plots.panel_agreement(panel_report(), ax),
    "panel_dropping": lambda est, data, ax: plots.panel_dropping(panel_report(), ax),
    "panel_shares": lambda est, data, ax: plots.panel_shares(panel_report(), ax),
    "pool_scores": lambda est, data, ax: plots.pool_scores(fitted_default(), ax),
    "posterior_course": lambda est, data, ax: plots.posterior_course(
        finished_policy().result(), finished_policy().space, "colour", ax
    ),
    "predictive_check": lambda est, data, ax: plots.predictive_check(
        crowd_checks(), ax, what="vote_entropy"
    ),
    "reliability": lambda est, data, ax: plots.reliability(est.probas_, data.truth, ax),
    "repeat_losses": lambda est, data, ax: plots.repeat_losses(selection(), ax),
    "score_curve": lambda est, data, ax: plots.score_curve(
        bc.MutualInformationSelector(10).fit(data.annotations), ax
    ),
    "selection_errors": lambda est, data, ax: plots.selection_errors(ERRORS, ax),
    "credibility_density": lambda est, data, ax: plots.credibility_density(
        {"now": one_row_of_draws()}, ax, at={"feature_value": "x=a"}
    ),
    "spending_course": lambda est, data, ax: plots.spending_course(finished_policy().result(), ax),
    "stagewise_course": lambda est, data, ax: plots.stagewise_course(
        bc.StagewiseEM(3).fit(data.annotations), "n_informative", ax
    ),
    "thompson_gains": lambda est, data, ax: plots.thompson_gains(finished_policy(), ax, n_draws=20),
    "unexplained_pairs": lambda est, data, ax: plots.unexplained_pairs(
        bc.MDPD(3, n_init=1).fit(data.annotations), ax
    ),
    "worker_forest": lambda est, data, ax: plots.worker_forest(one_coin_draws(), ax),
    "worker_map": lambda est, data, ax: plots.worker_map(est, ax),
    "worker_recovery": lambda est, data, ax: plots.worker_recovery(est, data.parameters, ax),
}


OVERVIEWS = {"aggregation_overview", "demo", "panel_overview", "posterior_overview"}
"""Figures of several pictures, which have tests of their own."""


def test_every_picture_is_tested():
    assert {*PICTURES, *OVERVIEWS} == set(plots.__all__)


@pytest.mark.parametrize("name", PICTURES)
def test_draws_on_the_given_axes(est, data, name):
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert PICTURES[name](est, data, left) is left
    assert left.has_data()
    assert not right.has_data()


@pytest.mark.parametrize("name", PICTURES)
def test_makes_axes_of_its_own_outside_pyplot(est, data, name, tmp_path):
    ax = PICTURES[name](est, data, None)
    assert isinstance(ax, Axes)
    assert plt.get_fignums() == []
    assert ax.get_title(loc="left")
    assert ax.get_xlabel()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.figure.savefig(tmp_path / "picture.png")


@pytest.mark.parametrize("name", PICTURES)
def test_text_stays_inside_the_figure_and_apart(est, data, name):
    ax = PICTURES[name](est, data, None)
    canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    ticks = [*ax.get_xticklabels(), *ax.get_yticklabels()]
    texts = [*ax.texts, ax.xaxis.label, ax.yaxis.label, ax._left_title, *ticks]
    limits = ax.get_window_extent(renderer)
    boxes = []
    for text in texts:
        box = text.get_window_extent(renderer)
        if not text.get_text() or not text.get_visible():
            continue
        if text in ticks:  # those beyond the limits are not drawn
            x, y = box.x0 + box.width / 2, box.y0 + box.height / 2
            if not (limits.x0 - 1 <= x <= limits.x1 + 1 or limits.y0 - 1 <= y <= limits.y1 + 1):
                continue
        boxes.append((text.get_text(), box))
    inside = ax.figure.bbox.padded(1)
    assert all(inside.x0 <= b.x0 and b.x1 <= inside.x1 for _, b in boxes)
    assert all(inside.y0 <= b.y0 and b.y1 <= inside.y1 for _, b in boxes)
    for i, (one, box) in enumerate(boxes):
        assert [other for other, b in boxes[i + 1 :] if box.padded(-1).overlaps(b)] == [], one


def test_pictures_do_not_change_what_they_draw(est, data):
    before = [est.probas_.copy(), est.worker_quality_.copy(), est.confusions_.copy()]
    for draw in PICTURES.values():
        draw(est, data, None)
    for frame, again in zip(
        before, [est.probas_, est.worker_quality_, est.confusions_], strict=True
    ):
        pd.testing.assert_frame_equal(frame, again)


def test_confusion_matrix_shows_the_worker(est):
    ax = plots.confusion_matrix(est, 3)
    np.testing.assert_array_equal(ax.images[0].get_array(), est.confusions_.loc[3])
    shown = {tuple(map(int, t.get_position())): t.get_text() for t in ax.texts}
    expected = est.confusions_.loc[3].to_numpy()[1, 2]
    assert shown[2, 1] == ("" if expected < 0.005 else f"{expected:.0%}")
    assert "3" in ax.get_title(loc="left")
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0", "1", "2"]


def test_confusion_matrix_of_many_classes_has_colours_explained():
    data = bc.simulate.crowd(300, 5, 30, seed=0)
    ax = plots.confusion_matrix(bc.MajorityVote().fit(data.annotations), 0)
    assert len(ax.texts) == 0
    assert len(ax.figure.axes) == 2
    assert ax.figure.axes[1].get_ylabel() == "share of the worker's labels"
    assert [t.get_text() for t in ax.get_xticklabels()] == [str(k) for k in range(0, 30, 2)]


def test_confusion_matrix_with_long_names():
    names = ["a rather long name", "another long name", "c"]
    data = bc.simulate.crowd(50, 5, 3, seed=0).annotations
    ann = bc.Annotations.from_codes(
        *(data.task_codes, data.worker_codes, data.label_codes),
        tasks=50,
        workers=["w" * 40, "b", "c", "d", "e"],
        classes=names,
    )
    ax = plots.confusion_matrix(bc.MajorityVote().fit(ann), "w" * 40)
    assert ax.get_xticklabels()[0].get_rotation() == 40
    assert ax.get_xticklabels()[0].get_text() == "a rather long..."
    assert "www..." in ax.get_title(loc="left")


def test_worker_map_has_a_dot_per_worker(est):
    ax = plots.worker_map(est)
    quality = est.worker_quality_
    dots = np.concatenate([c.get_offsets() for c in ax.collections])
    assert len(dots) == len(quality)
    np.testing.assert_allclose(np.sort(dots[:, 0]), np.sort(quality["accuracy"]))
    labels = [t.get_text() for t in ax.get_legend().get_texts()]
    for flag, count in quality["flag"].value_counts().items():
        assert f"{flag or 'not flagged'} ({count})" in labels
    sizes = np.concatenate([c.get_sizes() for c in ax.collections])
    order = np.concatenate(
        [
            quality.loc[quality["flag"] == f, "n_labels"]
            for f in ("", "spammer", "adversary")
            if (quality["flag"] == f).any()
        ]
    )
    assert (np.argsort(sizes, kind="stable") == np.argsort(order, kind="stable")).all()
    priors = est.priors_.to_numpy()
    np.testing.assert_allclose(ax.lines[0].get_ydata(), -(priors * np.log(priors)).sum())


def test_worker_recovery_compares_like_with_like(est, data):
    ax = plots.worker_recovery(est, data.parameters)
    dots = np.concatenate([c.get_offsets() for c in ax.collections])
    truly = np.einsum("wkk,k->w", data.parameters.confusions, data.parameters.prevalence)
    np.testing.assert_allclose(np.sort(dots[:, 0]), np.sort(truly))
    labels = [t.get_text() for t in ax.get_legend().get_texts()]
    assert labels[0] == "honest (21)"
    assert labels[-1] == "adversary (3)"


def test_worker_recovery_of_unheard_kinds(est, data):
    kinds = np.where(data.parameters.kinds == "honest", "sleepy", data.parameters.kinds)
    ax = plots.worker_recovery(est, data.parameters._replace(kinds=kinds))
    assert ax.get_legend().get_texts()[-1].get_text() == "sleepy (21)"


def test_reliability_is_the_curve(est, data):
    ax = plots.reliability({"EM": est.probas_}, data.truth, n_bins=8)
    curve = bc.metrics.reliability_curve(est.probas_, data.truth, n_bins=8)
    line = ax.containers[0].lines[0]
    np.testing.assert_allclose(line.get_xdata(orig=False), curve["confidence"])
    np.testing.assert_allclose(line.get_ydata(orig=False), curve["accuracy"])
    error = bc.metrics.expected_calibration_error(est.probas_, data.truth)
    assert ax.get_legend().get_texts()[0].get_text() == f"EM: off by {error:.1%} on average"


def test_label_uncertainty_counts_every_task(est):
    ax = plots.label_uncertainty(est, n_bins=7)
    assert len(ax.patches) == 7
    assert sum(bar.get_height() for bar in ax.patches) == len(est.labels_)
    sure = (est.probas_.max(axis=1) >= 0.95).mean()
    assert ax.get_title(loc="left").startswith(f"{sure:.0%} of 400 labels")


def test_convergence_is_the_trace(est):
    ax = plots.convergence(est)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), est.trace_)
    assert ax.get_title(loc="left") == f"DawidSkene converged: {est.n_iter_} iterations"


def test_method_comparison_marks_the_reference():
    ax = plots.method_comparison(TABLE, reference=0.95)
    assert [t.get_text().strip() for t in ax.texts] == ["75.0%", "90.0%", "true model 95.0%"]
    np.testing.assert_allclose(ax.collections[0].get_offsets()[:, 0], TABLE["accuracy"])
    alone = plots.method_comparison(TABLE.head(1))
    assert alone.get_xlim()[0] < 0.75 < alone.get_xlim()[1]


def test_demo_has_six_panels_in_the_given_figure(est, data):
    vote = bc.MajorityVote().fit(data.annotations)
    figure = Figure(figsize=(14, 8), layout="constrained")
    fitted = {"vote": vote, "EM": est}
    assert plots.demo(data, fitted, TABLE, best="EM", reference=0.95, fig=figure) is figure
    assert len(figure.axes) == 6
    assert all(ax.has_data() for ax in figure.axes)
    assert "240 labels" not in figure.get_suptitle()
    assert "3,200 labels by 30 simulated workers" in figure.get_suptitle()


def test_flags_differ_by_colour_and_marker(est):
    ax = plots.worker_map(est)
    colours = {tuple(c.get_facecolors()[0][:3]) for c in ax.collections}
    markers = {len(c.get_paths()[0].vertices) for c in ax.collections}
    assert len(colours) == len(markers) == len(ax.collections) == 3
    assert tuple(to_rgba(BLUE)[:3]) in colours


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda est, data: plots.confusion_matrix(est, "eve"), "worker 'eve' is not among the 30"),
        (
            lambda est, data: plots.convergence(bc.MajorityVote().fit(data.annotations)),
            "MajorityVote does not iterate",
        ),
        (lambda est, data: plots.method_comparison(pd.DataFrame({"a": [1]})), "no column 'accu"),
        (
            lambda est, data: plots.worker_recovery(est, bc.simulate.crowd(9, 5, 3).parameters),
            "expected the crowd that was simulated",
        ),
        (
            lambda est, data: plots.demo(
                data._replace(parameters=None), {"EM": est}, TABLE, best="EM"
            ),
            "expected a simulated crowd",
        ),
    ],
)
def test_bad_input(est, data, draw, message):
    with pytest.raises(ValueError, match=message):
        draw(est, data)
