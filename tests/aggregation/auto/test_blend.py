"""The blend of candidates: its equations, its limits, and who decides where fits contradict."""

import numpy as np
import pytest

from bayescrowd.aggregation.auto import blend
from bayescrowd.aggregation.auto.blend import blend_for, pool_reliance, smoothed_votes


def test_weights_by_hand():
    """Sixteen raters, a gain of 2.8 standard errors: equations 2 to 4 with pencil and paper."""
    reliance = 256 / (256 + 64) * 0.5
    assert pool_reliance(16, 2.8) == pytest.approx(reliance)
    of_pool = 256 / (256 + 160**2)
    total = of_pool + 0.1 + 0.3 + 0.15
    found = blend_for(16, 2_000, 2.8, 0.2)
    assert found.weights["pool"] == pytest.approx(reliance + (1 - reliance) * of_pool / total)
    assert found.weights["EBCC"] == pytest.approx((1 - reliance) * 0.3 / total)
    assert found.vote_weight == 0.05
    alone = 1.4 + 0.07 * 2.8
    assert found.temperature == pytest.approx(reliance * alone + (1 - reliance) * 1.8)


@pytest.mark.parametrize("n_raters", [1, 4, 30, 10_000])
@pytest.mark.parametrize("gain", [-50.0, 0.0, 3.0, 50.0])
@pytest.mark.parametrize("instability", [np.nan, 0.0, 0.5, 0.9])
def test_weights_sum_to_one(n_raters, gain, instability):
    found = blend_for(n_raters, 2_000, gain, instability)
    assert sum(found.weights.values()) == pytest.approx(1)
    assert 0 < found.vote_weight <= 1
    assert 1.0 <= found.temperature <= 1.8


def test_votes_decide_where_fits_contradict_each_other():
    votes = smoothed_votes(np.array([[3, 1], [0, 4]]))
    surely_wrong = {name: np.array([[0.0, 1.0], [1.0, 0.0]]) for name in blend.WEIGHTS}
    unstable = blend_for(10, 2_000, 8.0, 0.9)
    answer = unstable.temper(unstable.with_votes(unstable.mix(surely_wrong), votes))
    np.testing.assert_array_equal(answer.argmax(axis=1), votes.argmax(axis=1))
    stable = blend_for(10, 2_000, 8.0, 0.1)
    answer = stable.temper(stable.with_votes(stable.mix(surely_wrong), votes))
    np.testing.assert_array_equal(answer.argmax(axis=1), [1, 0])


def test_votes_have_the_say_where_there_are_hardly_any_labels():
    """Equation 4: 40 / (40 + 10), 40 / (40 + 40), and 5 % from 760 labels on."""
    weights = [blend_for(5, n_labels, 0.0, 0.1).vote_weight for n_labels in (10, 40, 760, 10**6)]
    assert weights == pytest.approx([0.8, 0.5, 0.05, 0.05])


def test_absent_candidates_leave_their_weight_to_the_others():
    found = blend_for(40, 2_000, 3.0, 0.1)
    pool, bootstrap = np.array([[0.9, 0.1]]), np.array([[0.2, 0.8]])
    w, v = found.weights["pool"], found.weights["rater bootstrap"]
    mixed = found.mix({"pool": pool, "rater bootstrap": bootstrap})
    np.testing.assert_allclose(mixed, (w * pool + v * bootstrap) / (w + v))


def test_bwa_stands_in_for_ebcc():
    found = blend_for(8, 2_000, 9.0, 0.1)
    present = found.shares(["pool", "rater bootstrap", "BWA"])
    assert present["BWA"] == pytest.approx(found.weights["BWA"] + found.weights["EBCC"])
    assert sum(present.values()) == pytest.approx(1)
    assert found.shares(found.weights) == pytest.approx(found.weights)


def test_smoothed_votes_by_hand():
    found = smoothed_votes(np.array([[2, 0], [0, 0]]))
    np.testing.assert_allclose(found, [[2.5 / 3, 0.5 / 3], [0.5, 0.5]])
