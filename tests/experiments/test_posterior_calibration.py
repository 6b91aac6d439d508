"""Calibration by hand, and of EM and Gibbs sampling on real crowds."""

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd import models
from bayescrowd.experiments import posterior_calibration as calibration
from bayescrowd.experiments.engine.journal import Record
from bayescrowd.experiments.engine.results import outcomes_of
from bayescrowd.experiments.posterior_calibration import (
    EXPERIMENT,
    calibration_of,
    gain_error,
    posterior_probas,
)


def two_classes(confidence):
    return pd.DataFrame({"a": confidence, "b": 1 - np.asarray(confidence)})


def test_measures_by_hand():
    # sure and right, sure and wrong, a fair guess
    found = calibration_of(two_classes([1.0, 1.0, 0.5]), pd.Series(list("aba")))
    assert found.right.tolist() == [1.0, 0.0, 0.5]
    assert found.error == pytest.approx(0.5)
    # the guess is calibrated; of the two sure ones, one is right: a gap of 1/2 on 2 of 3 tasks
    assert found.ece == pytest.approx(1 / 3)
    assert found.ks == pytest.approx(1 / 3)
    assert found.log_loss == pytest.approx((np.log(2) - np.log(np.finfo(float).eps)) / 3)


def test_the_distance_without_bins_sees_gaps_that_cancel_in_a_bin():
    # 0.51 always right, 0.53 always wrong: one bin of ten calls that fine
    confidence = np.repeat([0.51, 0.53], 50)
    truth = pd.Series(np.repeat(["a", "b"], 50))
    found = calibration_of(two_classes(confidence), truth)
    assert found.ece == pytest.approx(0.02)
    assert found.ks == pytest.approx(50 * 0.49 / 100)


def test_the_resampled_measure_is_the_metric():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, size=500)
    truth = pd.Series(np.where(rng.random(500) < confidence**2, "a", "b"))
    found = calibration_of(two_classes(confidence), truth)
    assert calibration._ece(found.confidence, found.right) == pytest.approx(found.ece)


def test_error_of_a_gain():
    # One is sure of all labels, the other says 0.7, and 0.7 are right. A resampled share s of
    # right labels is binomial, and the gain is (1 - s) - |s - 0.7|.
    truth = pd.Series(["a"] * 280 + ["b"] * 120)
    sure, fair = (calibration_of(two_classes([p] * 400), truth) for p in (1.0, 0.7))
    rng = np.random.default_rng(1)
    share = rng.binomial(400, 0.7, size=20_000) / 400
    expected = np.std(1 - share - np.abs(share - 0.7))
    # a thousand resamples: the standard deviation errs by 3 %
    assert gain_error(sure, fair, seed=0) == pytest.approx(expected, rel=0.12)
    assert gain_error(sure, sure, seed=0) == 0


def crowd(name):
    if not bc.datasets.is_local(name):
        pytest.skip(f"{name} is not on this machine: set BAYESCROWD_DATA to a folder with it")
    return bc.load_dataset(name)


def test_a_posterior_is_better_calibrated_than_em_on_rte():
    rte = crowd("rte")
    em = calibration_of(bc.DawidSkene().fit(rte.annotations).probas_, rte.truth)
    probas, rhat = posterior_probas(
        models.dawid_skene, rte.annotations, seed=0, chains=2, draws=250
    )
    gibbs = calibration_of(probas, rte.truth)
    assert rhat < 1.05
    # Measured: ECE 5.1 against 6.5 %, KS 5.1 against 6.4 %, log loss 0.25 against 0.48.
    assert gibbs.ece < em.ece - 0.005
    assert gibbs.ks < em.ks - 0.005
    assert gibbs.log_loss < em.log_loss - 0.1
    assert abs(gibbs.error - em.error) < 0.015


def test_claims_compare_posteriors_with_em():
    values = {cell.id: 1.0 if "Gibbs" in cell.id.row else 2.0 for cell in EXPERIMENT.cells}
    outcomes = outcomes_of(EXPERIMENT, records(values), 1)
    claims = EXPERIMENT.claims(outcomes)
    assert len(claims) == 6
    assert all(claim.holds for claim in claims)
    worse = {id_: 3.0 if id_.row == "dog: Gibbs" else value for id_, value in values.items()}
    held = [claim.holds for claim in EXPERIMENT.claims(outcomes_of(EXPERIMENT, records(worse), 1))]
    assert held == [True, True, True, True, False, True]
    EXPERIMENT.draw(outcomes)


def records(values):
    return {
        unit: Record({i: v for i, v in values.items() if i.row.startswith(f"{unit.part}:")}, 0.0)
        for unit in EXPERIMENT.units(1)
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rte", "dog"])
def test_posteriors_are_better_calibrated(name):
    crowd(name)
    found = EXPERIMENT.measure(name, 0)
    for method in ("Gibbs", "Gibbs, pooled"):
        for measure in ("log loss", "ECE", "KS"):
            ours, em = (found[f"{name}: {row}", measure] for row in (method, "EM"))
            assert ours < em, (method, measure)
