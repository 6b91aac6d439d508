import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescrowd import agreement, datasets, metrics
from bayescrowd.data.truth import TruthWarning

PROBAS = pd.DataFrame(
    [[0.7, 0.2, 0.1], [0.4, 0.4, 0.2], [1 / 3, 1 / 3, 1 / 3], [0.1, 0.2, 0.7]],
    index=["t1", "t2", "t3", "t4"],
    columns=["a", "b", "c"],
)
"""Rows with a clear winner, a tie of two, a tie of all, and a clear winner."""


def random_case(seed: int, n: int = 200, n_classes: int = 4) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(seed)
    probas = pd.DataFrame(rng.dirichlet(np.ones(n_classes), n)).rename_axis(columns="class")
    return probas, pd.Series([rng.choice(n_classes, p=row) for row in probas.to_numpy()])


# By hand


may_be_unlisted = pytest.mark.filterwarnings("ignore:.*no prediction and count")


@may_be_unlisted
@pytest.mark.parametrize(
    ("truth", "expected"),
    [
        ({"t1": "a"}, 0),
        ({"t1": "b"}, 1),
        ({"t2": "a"}, 1 / 2),
        ({"t2": "c"}, 1),
        ({"t3": "c"}, 2 / 3),
        ({"t1": "a", "unseen": "a"}, (0 + 2 / 3) / 2),
        ({"t1": "a", "t2": "b", "t3": "a", "t4": "a"}, (0 + 1 / 2 + 2 / 3 + 1) / 4),
        ({"t1": "a", "t2": None}, 0),
    ],
)
def test_expected_error(truth: dict, expected: float) -> None:
    assert metrics.error_rate(PROBAS, truth) == pytest.approx(expected, rel=1e-12)
    assert metrics.accuracy(PROBAS, pd.Series(truth)) == pytest.approx(1 - expected, rel=1e-12)


def test_row_of_nan_is_a_task_without_prediction() -> None:
    probas = PROBAS.copy()
    probas.loc["t1"] = np.nan
    assert metrics.error_rate(probas, {"t1": "a"}) == pytest.approx(2 / 3)
    assert metrics.brier_score(probas, {"t1": "a"}) == pytest.approx(2 / 3)
    assert metrics.log_loss(probas, {"t1": "a"}) == pytest.approx(np.log(3))


def test_ties_are_relative() -> None:
    near = pd.DataFrame([[0.5 + 1e-11, 0.5 - 1e-11]], columns=["a", "b"])
    apart = pd.DataFrame([[0.5 + 1e-8, 0.5 - 1e-8]], columns=["a", "b"])
    assert metrics.error_rate(near, {0: "b"}) == 0.5
    assert metrics.error_rate(apart, {0: "b"}) == 1


@may_be_unlisted
def test_labels() -> None:
    labels = pd.Series({1: "a", 2: "b", 3: None, 4: "c"})
    truth = pd.Series({1: "a", 2: "a", 3: "b", 5: "c"})
    # Right, wrong, missing and absent, the last two among three classes.
    assert metrics.error_rate(labels, truth) == pytest.approx((0 + 1 + 2 / 3 + 2 / 3) / 4)
    assert metrics.error_rate(labels, truth, classes=list("abcd")) == pytest.approx(
        (0 + 1 + 3 / 4 + 3 / 4) / 4
    )
    categorical = labels.astype(pd.CategoricalDtype(list("abcd")))
    assert metrics.error_rate(categorical, truth.astype("category")) == pytest.approx(
        (0 + 1 + 3 / 4 + 3 / 4) / 4
    )


@pytest.mark.parametrize("values", [(1, 2), (False, True), ("no", "yes")])
def test_types_of_classes(values: tuple) -> None:
    first, second = values
    probas = pd.DataFrame([[0.9, 0.1], [0.2, 0.8]], columns=list(values))
    truth = pd.Series([first, first])
    assert metrics.error_rate(probas, truth) == 0.5
    assert metrics.error_rate(pd.Series([first, second]), truth) == 0.5
    # A missing value turns integers into floats.
    assert metrics.error_rate(probas, pd.Series([first, first, None])) == 0.5


@may_be_unlisted
def test_confusion_table() -> None:
    truth = {"t1": "a", "t2": "b", "t3": "a", "t4": "a", "unseen": "c"}
    table = metrics.confusion_table(PROBAS, truth)
    assert list(table.index) == list(table.columns) == ["a", "b", "c"]
    np.testing.assert_allclose(
        table, [[1 + 1 / 3, 1 / 3, 1 + 1 / 3], [0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]]
    )


def test_tasks_that_the_prediction_does_not_list_are_counted() -> None:
    truth = {"t1": "a", "elsewhere": "b", "far": "c"}
    with pytest.warns(TruthWarning) as caught:
        scores = metrics.score_table(PROBAS, truth)
    assert [str(warning.message) for warning in caught] == [
        "2 of 3 truth tasks have no prediction and count as a uniform guess (such as 'elsewhere')"
    ]
    assert scores.n == 3
    assert scores.accuracy == pytest.approx((1 + 1 / 3 + 1 / 3) / 3)


@pytest.mark.parametrize("unchosen", ["d", 7])
def test_a_class_of_the_truth_that_nobody_chose_is_wrong(unchosen: object) -> None:
    truth = {"t1": "a", "t2": unchosen, "t3": unchosen}
    with pytest.warns(TruthWarning) as caught:
        scores = metrics.score_table(PROBAS, truth)
    assert [str(warning.message) for warning in caught] == [
        f"nobody chose the class {unchosen!r} of the truth: 2 of 3 truth tasks count as wrong"
    ]
    # t1 has .7, .2 and .1, t2 .4, .4 and .2; t3, without a prediction, is a guess among a, b and c.
    squares = [(1 - 0.7) ** 2 + 0.2**2 + 0.1**2, 0.4**2 + 0.4**2 + 0.2**2 + 1, 3 / 9 + 1]
    eps = np.finfo(float).eps
    assert scores.n == 3
    assert scores.accuracy == pytest.approx(1 / 3)
    assert scores.brier == pytest.approx(np.mean(squares))
    assert scores.log_loss == pytest.approx(-(np.log(0.7) + 2 * np.log(eps)) / 3)
    # a is decided 1 + 1/2 + 1/3 times and right once; b, c and the unknown class are never right.
    assert scores.macro_f1 == pytest.approx((2 / (1 + 1 + 1 / 2 + 1 / 3)) / 4)
    with pytest.warns(TruthWarning):
        table = metrics.confusion_table(PROBAS, truth)
    assert list(table.index) == ["a", "b", "c", unchosen]
    assert table.loc[unchosen].to_list() == pytest.approx([5 / 6, 5 / 6, 1 / 3, 0])


def test_labels_scored_by_a_class_that_nobody_chose() -> None:
    labels = pd.Series({1: "a", 2: "b"})
    with pytest.warns(TruthWarning, match="'c' of the truth: 1 of 2 truth tasks counts as wrong"):
        assert metrics.error_rate(labels, {1: "a", 2: "c"}, classes=["a", "b"]) == 0.5


def test_macro_f1_under_a_tie() -> None:
    probas = pd.DataFrame([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], columns=["a", "b", "c"])
    # Expected counts: a truly 1, decided 1.5, both 1; b truly 1, decided 0.5, both 0.5. Nobody
    # is c, nothing is decided c: no F1 of c.
    expected = (2 * 1 / 2.5 + 2 * 0.5 / 1.5) / 2
    assert metrics.macro_f1(probas, {0: "b", 1: "a"}) == pytest.approx(expected)


def test_brier_score_and_log_loss() -> None:
    truth = {"t1": "a", "t4": "a"}
    assert metrics.brier_score(PROBAS, truth) == pytest.approx(
        (0.09 + 0.04 + 0.01 + 0.81 + 0.04 + 0.49) / 2
    )
    assert metrics.log_loss(PROBAS, truth) == pytest.approx(-(np.log(0.7) + np.log(0.1)) / 2)


@pytest.mark.parametrize(("certain", "brier"), [("a", 0), ("b", 2)])
def test_range_of_the_brier_score(certain: str, brier: float) -> None:
    probas = pd.DataFrame([[1.0, 0.0]], columns=["a", "b"])
    assert metrics.brier_score(probas, {0: certain}) == brier


def test_a_certain_mistake_has_a_finite_log_loss() -> None:
    probas = pd.DataFrame([[1.0, 0.0]], columns=["a", "b"])
    assert metrics.log_loss(probas, {0: "b"}) == pytest.approx(-np.log(np.finfo(float).eps))


def test_reliability_curve() -> None:
    probas = pd.DataFrame({"a": [0.6, 0.7, 0.9, 0.5], "b": [0.4, 0.3, 0.1, 0.5]})
    truth = pd.Series(["a", "b", "a", "b"])
    curve = metrics.reliability_curve(probas, truth, n_bins=4)
    # Bins (.25, .5], (.5, .75], (.75, 1]: an edge belongs below it; a tie is half right.
    expected = pd.DataFrame(
        {
            "lower": [0.25, 0.5, 0.75],
            "upper": [0.5, 0.75, 1.0],
            "confidence": [0.5, 0.65, 0.9],
            "accuracy": [0.5, 0.5, 1.0],
            "n": [1, 2, 1],
        }
    )
    pd.testing.assert_frame_equal(curve, expected)
    error = metrics.expected_calibration_error(probas, truth, n_bins=4)
    assert error == pytest.approx((1 * 0 + 2 * 0.15 + 1 * 0.1) / 4)


def test_score_table() -> None:
    probas, truth = random_case(0)
    scores = metrics.score_table(probas, truth)
    assert scores == metrics.Scores(
        n=200,
        accuracy=metrics.accuracy(probas, truth),
        macro_f1=metrics.macro_f1(probas, truth),
        brier=metrics.brier_score(probas, truth),
        log_loss=metrics.log_loss(probas, truth),
        ece=metrics.expected_calibration_error(probas, truth),
    )


# Closed form


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_scores_of_a_uniform_guess(n_classes: int) -> None:
    probas = pd.DataFrame(np.full((5, n_classes), 1 / n_classes))
    truth = pd.Series(np.arange(5) % n_classes)
    scores = metrics.score_table(probas, truth)
    assert scores.accuracy == pytest.approx(1 / n_classes)
    assert scores.brier == pytest.approx(1 - 1 / n_classes)
    assert scores.log_loss == pytest.approx(np.log(n_classes))
    assert scores.ece == pytest.approx(0, abs=1e-12)


# Invariants


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(1, 30))
def test_order_and_names_do_not_matter(seed: int, n_classes: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    votes = rng.multinomial(4, np.full(n_classes, 1 / n_classes), n)  # many ties
    probas = pd.DataFrame(votes / 4)
    truth = pd.Series(rng.integers(n_classes, size=n))
    scores = metrics.score_table(probas, truth)

    rows = rng.permutation(n)
    names = dict(enumerate(rng.permutation([f"class {k}" for k in range(n_classes)])))
    columns = rng.permutation(n_classes)
    renamed = probas.iloc[rows, columns].rename(columns=names)
    same = metrics.score_table(renamed, truth.map(names).iloc[rng.permutation(n)])
    np.testing.assert_allclose(same, scores, rtol=1e-9, atol=1e-12)

    assert 0 <= scores.accuracy <= 1
    assert 0 <= scores.macro_f1 <= 1
    assert 0 <= scores.brier <= 2
    assert scores.log_loss >= 0
    assert 0 <= scores.ece <= 1
    table = metrics.confusion_table(probas, truth)
    assert table.to_numpy().sum() == pytest.approx(n)
    assert np.trace(table) / n == pytest.approx(scores.accuracy)


def test_input_is_not_changed() -> None:
    probas, truth = random_case(1)
    before = probas.copy(), truth.copy()
    metrics.score_table(probas, truth)
    assert probas.equals(before[0])
    assert truth.equals(before[1])


# Reference: other implementations and published examples


@pytest.mark.parametrize("seed", range(3))
def test_against_scikit_learn(seed: int) -> None:
    probas, truth = random_case(seed)
    values, labels = probas.to_numpy(), probas.to_numpy().argmax(axis=1)
    reference = {
        "accuracy": sklearn.metrics.accuracy_score(truth, labels),
        "macro_f1": sklearn.metrics.f1_score(truth, labels, average="macro"),
        "log_loss": sklearn.metrics.log_loss(truth, values),
        "brier": np.square(values - np.eye(4)[truth]).sum(axis=1).mean(),
    }
    scores = metrics.score_table(probas, truth)._asdict()
    for name, value in reference.items():
        assert scores[name] == pytest.approx(value, rel=1e-9)
    np.testing.assert_array_equal(
        metrics.confusion_table(probas, truth), sklearn.metrics.confusion_matrix(truth, labels)
    )


@pytest.mark.parametrize(
    ("name", "percent"),
    [("bluebird", 24.07), ("rte", 10.31), ("trec", 34.86), ("dog", 17.78), ("web", 26.93)],
)
def test_majority_vote_of_the_published_crowds(name: str, percent: float) -> None:
    """Errors printed by Zhang, Chen, Zhou and Jordan (2014); for dog, by Zhao and Zucker."""
    if not datasets.is_local(name):
        pytest.skip(f"{name} is not on this machine: set BAYESCROWD_DATA to a folder that has it")
    ann, truth, *_ = datasets.load_dataset(name)
    shares = ann.votes / ann.labels_per_task[:, None]
    probas = pd.DataFrame(shares, index=ann.tasks, columns=ann.classes)
    assert 100 * metrics.error_rate(probas, truth) == pytest.approx(percent, abs=0.005)


# Recovery


def test_calibrated_probabilities_have_a_small_calibration_error() -> None:
    probas, truth = random_case(3, n=20_000)
    n_bins = 10
    curve = metrics.reliability_curve(probas, truth, n_bins=n_bins)
    se = np.sqrt(curve["confidence"] * (1 - curve["confidence"]) / curve["n"])
    assert ((curve["accuracy"] - curve["confidence"]).abs() < 5 * se + 1e-12).all()


# Control


def test_overconfidence_shows() -> None:
    probas, truth = random_case(3, n=20_000)
    sharpened = probas**4
    sharpened = sharpened.div(sharpened.sum(axis=1), axis=0)
    calibrated = metrics.score_table(probas, truth)
    overconfident = metrics.score_table(sharpened, truth)
    assert overconfident.accuracy == calibrated.accuracy
    assert overconfident.ece > 10 * calibrated.ece
    assert overconfident.log_loss > calibrated.log_loss
    assert overconfident.brier > calibrated.brier


# Bad input


@pytest.mark.parametrize(
    ("prediction", "truth", "message"),
    [
        (PROBAS, {}, "the truth is empty"),
        (PROBAS, {"t1": None}, "the truth is empty"),
        (
            PROBAS,
            {7: "a"},
            "no task of the truth is predicted.* 7, the prediction has tasks such as 't1'",
        ),
        (PROBAS, pd.Series(["a", "b"], index=["t1", "t1"]), "truth gives task 't1' two different"),
        (PROBAS.iloc[[0, 0]], {"t1": "a"}, "the prediction lists task 't1' twice"),
        (
            PROBAS[["a", "a", "b"]],
            {"t1": "a"},
            "two columns of the table of probabilities are named 'a'",
        ),
        (PROBAS[["a"]], {"t1": "a"}, "expected tasks x classes with at least"),
        (PROBAS.iloc[:0], {"t1": "a"}, "expected tasks x classes with at least"),
        (2 * PROBAS, {"t1": "a"}, "row of task 't1' is .*expected probabilities that sum to 1"),
        (PROBAS.replace(0.7, np.nan), {"t1": "a"}, "row of task 't1' is .*expected probabilities"),
    ],
)
def test_bad_prediction_or_truth(
    prediction: pd.DataFrame, truth: dict | pd.Series, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        metrics.error_rate(prediction, truth)


def test_bad_labels() -> None:
    labels = pd.Series({1: "a", 2: "x"})
    with pytest.raises(ValueError, match="label of task 2 is 'x', which is not one of the classes"):
        metrics.error_rate(labels, {1: "a"}, classes=["a", "b"])
    with pytest.raises(ValueError, match="classes= was given with a table"):
        metrics.error_rate(PROBAS, {"t1": "a"}, classes=["a", "b"])


def test_bad_bins() -> None:
    with pytest.raises(ValueError, match="n_bins=0: expected at least 1"):
        metrics.reliability_curve(PROBAS, {"t1": "a"}, n_bins=0)


def test_measures_of_agreement_are_metrics_too() -> None:
    for name in agreement.__all__:
        assert getattr(metrics, name) is getattr(agreement, name)


def test_wilson_by_hand() -> None:
    # Wilson's interval for 8 of 10 at z = 1.96: 0.4902 to 0.9433.
    np.testing.assert_allclose(metrics.wilson_interval(0.8, 10), [0.4902, 0.9433], atol=5e-5)


@pytest.mark.parametrize(("share", "n"), [(0.0, 5), (1.0, 5), (0.3, 40)])
def test_wilson_ends_are_as_unlikely_as_asked_for(share: float, n: int) -> None:
    """Each end is a probability from which the share is z standard errors away."""
    ends = metrics.wilson_interval(share, n, level=0.9)
    assert 0 <= ends[0] <= share <= ends[1] <= 1
    for end in set(ends) - {0.0, 1.0}:
        assert abs(share - end) == pytest.approx(1.6448536 * (end * (1 - end) / n) ** 0.5)
