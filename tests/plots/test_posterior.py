"""Pictures of posteriors show the numbers they are made of."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba

from bayescrowd import plots
from bayescrowd.plots.canvas import VERMILLION
from bayescrowd.posterior.checks import CrowdChecks
from bayescrowd.posterior.container import assemble, dataset_of
from bayescrowd.posterior.workers import worker_posterior


def container(n_workers=5, n_chains=3, n_draws=200, shift=0.0):
    """Accuracies of workers; the last chain's log-likelihood is shifted."""
    rng = np.random.default_rng(1)
    accuracy = rng.beta(*(np.linspace(2, 9, n_workers), 3), size=(n_chains, n_draws, n_workers))
    log_likelihood = rng.normal(-500, 5, size=(n_chains, n_draws))
    log_likelihood[-1] += shift
    dims = ("chain", "draw", "worker")
    groups = {
        "posterior": {
            "prevalence": ((*dims[:2], "cls"), np.full((n_chains, n_draws, 2), 0.5)),
            "accuracy": (dims, accuracy),
        },
        "sample_stats": {"marginal_log_likelihood": (dims[:2], log_likelihood)},
        "constant_data": {"worker_code": (("judgement",), np.arange(n_workers).repeat(2))},
    }
    ids = {"worker": [f"w{k}" for k in range(n_workers)]}
    datasets = {name: dataset_of(group, coords=ids) for name, group in groups.items()}
    return assemble(datasets, attrs={"model": "one_coin"})


def test_ranks_of_agreeing_chains_are_flat():
    ax = plots.chain_ranks(container())
    heights = np.reshape([bar.get_height() for bar in ax.patches], (3, 20))
    assert (heights.sum(axis=1) == 200).all()
    assert (heights.sum(axis=0) == 30).all()
    # ten expected in each bar, of a hypergeometric distribution with variance below 10
    assert np.abs(heights - 10).max() < 4.5 * np.sqrt(10)


def test_ranks_of_a_stray_chain_lean_to_one_side():
    ax = plots.chain_ranks(container(shift=100.0))
    heights = np.reshape([bar.get_height() for bar in ax.patches], (3, 20))
    assert heights[2, :13].sum() == 0
    assert heights[2, 14:].tolist() == [30] * 6


def test_traces_are_the_draws():
    post = container()
    ax = plots.chain_traces(post, variable="accuracy", at={"worker": "w2"})
    expected = post.posterior["accuracy"].sel(worker="w2")
    for line, chain in zip(ax.get_lines(), expected.to_numpy(), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), chain)
    assert ax.get_ylabel() == "accuracy[w2]"


def test_the_forest_has_intervals_and_the_best_worker_above():
    post = container()
    table = worker_posterior(post).sort_values("accuracy", ascending=False)
    ax = plots.worker_forest(post)
    segments = np.array(ax.collections[0].get_segments())
    np.testing.assert_allclose(segments[:, :, 0], table[["lower", "upper"]])
    np.testing.assert_allclose(ax.collections[1].get_offsets()[:, 0], table["accuracy"])
    assert ax.yaxis_inverted()
    assert ax.get_yticklabels()[0].get_text() == f"{table.index[0]} (2)"


def test_a_crowded_forest_keeps_both_ends():
    ax = plots.worker_forest(container(n_workers=60, n_draws=20), most=10)
    assert ax.get_title(loc="left").startswith("5 best and 5 worst of 60 workers")
    assert len(ax.get_yticks()) == 10


def test_comparison_has_two_standard_errors():
    table = pd.DataFrame(
        {"elpd_diff": [0.0, -7.0], "dse": [0.0, 3.0], "weight": [0.9, 0.1], "n_bad": [0, 2]},
        index=["pooled", "one coin"],
    )
    ax = plots.loo_comparison(table)
    bars = ax.collections[0].get_segments()
    np.testing.assert_allclose([bar[:, 0] for bar in bars], [[0, 0], [-13, -1]])
    assert [text.get_text() for text in ax.texts] == ["weight 0.90", "weight 0.10, 2 unreliable"]
    with pytest.raises(ValueError, match="no column 'dse'; expected the table of compare"):
        plots.loo_comparison(table.drop(columns="dse"))


def checks(p_values):
    table = pd.DataFrame(
        {"observed": 0.5, "mean": 0.4, "lower": 0.3, "upper": 0.6, "p_value": p_values}
    )
    return CrowdChecks(table, table, table.iloc[:0])


def test_misfits_are_marked():
    ax = plots.predictive_check(checks([0.4, 0.005, 0.999]))
    assert ax.get_title(loc="left") == "Agreement in 3 pairs, 2 marked"
    usual, marked = ax.containers
    assert len(usual.lines[0].get_xdata()) == 1
    assert len(marked.lines[0].get_xdata()) == 2
    assert to_rgba(marked.lines[0].get_color()) == to_rgba(VERMILLION)
    np.testing.assert_allclose(usual.lines[2][0].get_segments()[0][:, 0], [0.3, 0.6])


def test_entropies_stand_in_rows():
    ax = plots.predictive_check(checks([0.4, 0.005]), what="vote_entropy")
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["model, 90%", "observed", "observed, marked"]
    np.testing.assert_allclose(ax.collections[0].get_segments()[1][:, 0], [0.3, 0.6])


def test_nothing_to_check_is_refused():
    with pytest.raises(ValueError, match="no label frequency to check"):
        plots.predictive_check(checks([0.4]), what="label_frequency")


def test_overview_adds_calibration_where_the_truth_is_known():
    post = container()
    assert len(plots.posterior_overview(post).axes) == 3
    probas = pd.DataFrame({"a": [0.9, 0.2, 0.6, 0.7], "b": [0.1, 0.8, 0.4, 0.3]})
    truth = pd.Series(["a", "b", "b", "a"])
    figure = plots.posterior_overview(post, probas=probas, truth=truth)
    assert len(figure.axes) == 4
    FigureCanvasAgg(figure).draw()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variable": "nothing"}, "no variable 'nothing'; there are prevalence, accuracy, mar"),
        ({"variable": "accuracy"}, "accuracy has several entries; expected ids of worker in at="),
    ],
)
def test_wrong_variables_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        plots.chain_traces(container(), **options)
