"""Selection by mutual information, and its automatic cut-offs."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import bayescrowd as bc
from bayescrowd.data.features import as_feature_table
from bayescrowd.selection.workers.mutual_information import _knee, _share_of_scores

Selector = bc.MutualInformationSelector


@pytest.fixture(scope="module")
def sparse():
    """Four informative workers, the first, among sixteen who are not."""
    return bc.simulate.sparse_crowd(400, 20, alpha=0.2, accuracy=0.75, seed=3)


# By hand.


def test_scores_are_sums_of_rows(sparse):
    found = Selector(4, estimator="paper").fit(sparse.annotations)
    matrix = bc.pairwise_mutual_information(sparse.annotations)
    pd.testing.assert_series_equal(found.scores_, matrix.sum(axis=1), check_names=False)
    assert found.ranking_.to_list() == matrix.sum(axis=1).sort_values().index[::-1].to_list()
    assert found.selected_.to_list() == found.ranking_[:4].to_list()
    np.testing.assert_allclose(found.curve_["score"], np.sort(found.scores_)[::-1])
    top = found.ranking_[:3]
    assert found.curve_.loc[3, "within"] == pytest.approx(matrix.loc[top, top].to_numpy().sum() / 2)
    assert found.curve_["held_out"].isna().all()


def test_ties_go_by_the_order_of_features():
    same = pd.DataFrame({name: [0, 1, 0, 1] for name in "dcba"})
    assert Selector(2).fit(same).selected_.to_list() == ["d", "c"]


def test_knee_by_hand():
    # The chord falls by 1/5 a step; the curve is farthest below it at the second score.
    assert _knee(np.array([10.0, 2.0, 1.5, 1.0, 0.5, 0.0])) == 2
    assert _knee(np.array([1.0, 1.0, 1.0])) == 3
    assert _knee(np.array([2.0, 1.0])) == 2


def test_share_of_scores_by_hand():
    assert _share_of_scores(np.array([90.0, 5.0, 3.0, 2.0])) == 2
    assert _share_of_scores(np.array([90.0, 4.0, 3.0, 2.0, 1.0, -5.0])) == 3
    assert _share_of_scores(np.zeros(4)) == 4


# Selection.


def test_informative_workers_come_first_by_class(sparse):
    found = Selector(4).fit(sparse.annotations)
    assert sorted(found.selected_) == sorted(found.ranking_[:4]) == [0, 1, 2, 3]


@pytest.mark.parametrize("heuristic", ["score", "subset"])
@pytest.mark.parametrize("estimator", ["paper", "co-labelled", "miller-madow", "chi-square"])
def test_informative_workers_come_first(sparse, heuristic, estimator):
    found = Selector(4, heuristic=heuristic, estimator=estimator).fit(sparse.annotations)
    assert sorted(found.selected_) == [0, 1, 2, 3]
    assert sorted(found.ranking_[:4]) == [0, 1, 2, 3]


@pytest.mark.parametrize("heuristic", ["score", "subset"])
def test_held_out_likelihood_finds_where_to_stop(sparse, heuristic):
    found = Selector(heuristic=heuristic, estimator="paper").fit(sparse.annotations)
    # A worker who knows nothing costs next to nothing: a few may slip in, none may be missed.
    assert {0, 1, 2, 3} <= set(found.selected_)
    assert len(found.selected_) <= 8
    computed = found.curve_["held_out"].dropna()
    assert (computed.index[0], computed.index[-1]) == (3, 20)
    assert computed[4] > computed[3] + 0.1
    assert computed[4] > computed[20] + 0.05
    error = found.curve_["held_out_error"].dropna()
    assert error[computed.idxmax()] == 0
    enough = computed.index[computed >= computed.max() - error]
    assert len(found.selected_) == enough[0] <= computed.idxmax()


def test_held_out_likelihood_keeps_everybody_where_all_are_good():
    data = bc.simulate.one_coin_crowd(300, 12, 3, accuracy=[0.7] * 12, seed=0)
    assert len(Selector().fit(data.annotations).selected_) == 12


def test_features_of_different_kinds():
    rng = np.random.default_rng(0)
    kind = rng.integers(2, size=500)
    table = pd.DataFrame(
        {
            "noise": rng.choice(["u", "v", "w"], 500),
            "sex": np.where(rng.random(500) < 0.85, kind, 1 - kind),
            "colour": np.where(rng.random(500) < 0.8, np.array(["red", "blue"])[kind], "green"),
            "coin": rng.integers(2, size=500),
            "size": np.where(rng.random(500) < 0.9, kind, 2).astype(float),
        }
    )
    table.loc[::7, "size"] = np.nan
    found = Selector(n_components=2).fit(table)
    assert sorted(found.ranking_[:3]) == ["colour", "sex", "size"]
    assert {"colour", "sex", "size"} <= set(found.selected_)
    kept = Selector(3).fit(table).transform(table)
    assert kept.columns.to_list() == ["sex", "colour", "size"]


@pytest.mark.parametrize("rule", ["knee", "95%"])
def test_other_rules_select_a_head_of_the_ranking(sparse, rule):
    found = Selector(rule=rule).fit(sparse.annotations)
    n = len(found.selected_)
    assert found.selected_.equals(found.ranking_[:n])
    assert 1 <= n <= 20


def test_seed_decides_the_folds(sparse):
    few = sparse.annotations.select_workers(range(8))
    one, same, other = (Selector(estimator="paper", seed=s).fit(few).curve_ for s in (1, 1, 2))
    pd.testing.assert_frame_equal(one, same)
    assert not one["held_out"].equals(other["held_out"])


# The selector protocol.


def test_forms_of_data(sparse):
    ann = sparse.annotations
    wide = ann.to_frame().pivot(index="task", columns="worker", values="label")
    fits = [Selector(4).fit(data) for data in (ann, wide, ann.to_frame(), wide.to_numpy())]
    for found in fits:
        assert found.get_support().tolist() == [True] * 4 + [False] * 16
        assert found.get_support(indices=True).tolist() == [0, 1, 2, 3]
        assert found.get_feature_names_out().tolist() == [0, 1, 2, 3]
    by_labels = fits[0]
    assert by_labels.transform(ann).workers.to_list() == [0, 1, 2, 3]
    assert set(by_labels.transform(ann.to_frame())["worker"]) == {0, 1, 2, 3}
    assert fits[1].transform(wide).columns.to_list() == [0, 1, 2, 3]
    np.testing.assert_array_equal(fits[3].transform(wide.to_numpy()), wide.to_numpy()[:, :4])
    assert by_labels.transform(as_feature_table(ann)).features.to_list() == [0, 1, 2, 3]
    assert Selector(4).fit_transform(ann).n_labels == 4 * 400


def test_members_of_other_sizes(sparse):
    found = Selector(2).fit(sparse.annotations)
    assert sorted(found.members(4)) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="n_features=21: expected 1 to 20"):
        found.members(21)


def test_parameters_follow_scikit_learn():
    selector = Selector(3, heuristic="subset", estimator="paper", seed=4)
    assert clone(selector).get_params() == selector.get_params()
    with pytest.raises(NotFittedError):
        selector.get_support()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": 0}, "n_features=0: expected at least 1 .* or 'auto'"),
        ({"n_features": 21}, "n_features=21"),
        ({"n_features": "all"}, "n_features='all'"),
        ({"heuristic": "best"}, "heuristic='best': expected 'score' or 'subset'"),
        ({"rule": "elbow"}, "rule='elbow'"),
        ({"estimator": "plug-in"}, "estimator='plug-in'"),
        ({"heuristic": "subset"}, "needs an estimator that compares pairs of features: paper"),
        ({"n_components": 0}, "n_components=0"),
    ],
)
def test_bad_parameters(sparse, options, message):
    with pytest.raises(ValueError, match=message):
        Selector().set_params(**options).fit(sparse.annotations)


def test_bad_data(sparse):
    with pytest.raises(ValueError, match="with the 20 features of the fit, got ndarray of shape"):
        Selector(3).fit(sparse.annotations).transform(np.zeros((5, 3)))
    with pytest.raises(ValueError, match="needs at least 2 items"):
        Selector().fit(np.array([[0, 1]]))
