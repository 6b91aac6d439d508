"""Swap consistency, by hand, on simulated panels with position bias, and in odd cases."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import bayescrowd as bc
from bayescrowd.panel.swaps import exact_interval, paired_orders, swap_consistency


def wide(**columns):
    return bc.Annotations.from_matrix(pd.DataFrame({k: list(v) for k, v in columns.items()}))


def panel(columns):
    return bc.Annotations.from_matrix(pd.DataFrame(columns))


def test_by_hand():
    ann = panel(
        {
            "gpt/plain": ["A", "A", "A", "B", "B", None],
            "gpt/swap": ["A", "B", "B", "A", "B", "B"],
            "llama/plain": ["A", "A", "B", "B", "A", "A"],
            "llama/swap": ["A", "A", "B", "B", "A", "A"],
            "alone/plain": ["A", "B", "B", "B", "A", "A"],
        }
    )
    found = swap_consistency(ann)
    assert found.index.to_list() == ["llama", "gpt"]
    gpt = found.loc["gpt"]
    # The sixth task was judged in one order only; of five, the first and the fifth are the same.
    assert (gpt["n_shared"], gpt["n_consistent"], gpt["consistency"]) == (5, 2, 0.4)
    assert (gpt["first_verdict"], gpt["second_verdict"], gpt["n_verdicts"]) == ("A", "B", 2)
    llama = found.loc["llama"]
    assert llama["consistency"] == 1
    assert pd.isna(llama["first_verdict"])
    assert llama["upper"] == 1
    # Of six out of six, the lower end is where six successes have a chance of one in twenty.
    assert llama["lower"] == pytest.approx(0.05 ** (1 / 6))


def test_verdicts_that_name_the_position_are_consistent_where_they_differ():
    verdicts = {"j/plain": [*"1122"], "j/swap": [*"2212"]}
    content = swap_consistency(panel(verdicts)).loc["j"]
    position = swap_consistency(panel(verdicts), naming="position").loc["j"]
    assert content["n_consistent"] == 1
    assert position["n_consistent"] == 3
    assert (position["first_verdict"], position["second_verdict"]) == ("2", "2")
    three = {"j/plain": [*"1123"], "j/swap": [*"2212"]}
    with pytest.raises(ValueError, match="name positions have 3 classes; expected 2"):
        swap_consistency(panel(three), naming="position")


def test_repeated_verdicts_count_by_the_most_frequent():
    rows = [
        *[("t1", "j/plain", "A"), ("t1", "j/plain", "A"), ("t1", "j/plain", "B")],
        ("t1", "j/swap", "A"),
        *[("t2", "j/plain", "A"), ("t2", "j/plain", "B"), ("t2", "j/swap", "B")],  # a tie
        *[("t3", "j/plain", "B"), ("t3", "j/swap", "A")],
    ]
    ann = bc.Annotations.from_frame(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    found = swap_consistency(ann).loc["j"]
    assert (found["n_shared"], found["n_consistent"]) == (2, 1)


def test_interval_is_that_of_scipy():
    n_true, n = np.array([0.0, 3.0, 10.0, 417.0]), np.array([5.0, 10.0, 10.0, 419.0])
    lower, upper = exact_interval(n_true, n, 0.8)
    for i in range(len(n)):
        exact = scipy.stats.binomtest(int(n_true[i]), int(n[i])).proportion_ci(0.8, "exact")
        np.testing.assert_allclose([lower[i], upper[i]], exact, atol=1e-9)


@pytest.mark.parametrize("bias", [0.0, 0.2, 0.6])
def test_recovers_position_bias(bias):
    """A judge who errs by position alone is consistent unless it looks at the position once.

    Both orders share the judge's verdict V. With probability (1 - b)^2 both name it. With b^2 both
    name the first position, which is not the same class. With 2 b (1 - b), one names its first
    position and the other V, which agree with probability one half where V is even.
    """
    n = 4000
    data = bc.simulate.panel(n, 1, position_bias=bias, swapped=True, accuracy=[0.8], seed=5)
    found = swap_consistency(data.annotations, level=0.99).loc["judge0"]
    expected = (1 - bias) ** 2 + bias * (1 - bias)
    error = np.sqrt(expected * (1 - expected) / n)
    assert abs(found["consistency"] - expected) <= 4 * error + 0.02 * bias  # V is nearly even
    if bias:
        # The class shown first in the plain order is named there, and the other one in the swapped.
        assert (found["first_verdict"], found["second_verdict"]) == (0, 1)


def test_does_not_depend_on_the_order_of_judges():
    data = bc.simulate.panel(200, 4, position_bias=0.3, swapped=True, seed=1).annotations
    frame = data.to_frame().sample(frac=1, random_state=0)
    other = swap_consistency(bc.Annotations.from_frame(frame))
    pd.testing.assert_frame_equal(other, swap_consistency(data))


def test_endings_of_other_names_and_of_each_other():
    names = pd.Index(["a-AB", "a-BA", "b-AB", "x", 7])
    assert paired_orders(names, ("-AB", "-BA")) == {"a": (0, 1)}
    assert paired_orders(names, ("/plain", "/swap")) == {}
    # 'swap' ends in 'ap': the longer ending is the name's own.
    assert paired_orders(pd.Index(["j/swap", "j/ap"]), ("ap", "swap")) == {"j/": (1, 0)}
    assert swap_consistency(wide(x="ab", y="ab")).empty


@pytest.mark.parametrize("orders", [("/a",), ("/a", "/a"), ("", "/b"), ("/a", "/b", "/c")])
def test_orders_are_two_endings(orders):
    with pytest.raises(ValueError, match="expected two different endings"):
        paired_orders(pd.Index(["j/a", "j/b"]), orders)
