"""What users read about modes."""

import numpy as np
import xarray as xr
from scipy.special import logsumexp

from bayescrowd.posterior.mode_report import mode_note, mode_problems, unweighed_modes


def modes(mode_of_chain, log_evidence):
    probability = np.zeros((2, 10, 3))
    probability[0, :, 0] = 1.0
    probability[1, :7, 0], probability[1, 7:, 2] = 1.0, 1.0
    heights = np.array(log_evidence)
    return xr.Dataset(
        {
            "weight": ("mode", np.exp(heights - logsumexp(heights))),
            "log_evidence": ("mode", heights),
            "log_evidence_error": ("mode", np.array([0.2, 0.3])),
            "mode_of_chain": ("chain", np.array(mode_of_chain)),
            "probability": (("mode", "task", "cls"), probability),
        },
        coords={"cls": ["cat", "dog", "fox"]},
    )


def test_modes_are_named_in_words():
    (found,) = mode_problems(modes([0, 1, 0, 0], [-100.0, -102.0]))
    assert "has 2 modes" in found
    assert "0.88 in mode 0 (chains 0, 2 and 3)" in found
    assert "0.12 in mode 1 (chain 1, -2.0 nats, give or take 0.3)" in found
    assert "3 of 10 tasks another class than mode 0, mostly 'fox' for 'cat' (3)" in found


def test_modes_that_hold_nothing_are_no_problem_once_left():
    left = modes([0, 0, 0, 0], [-100.0, -115.0])
    assert mode_problems(left) == []
    assert mode_note(left) == (
        "Chains found and left another mode, which holds 3e-07 of the posterior."
    )


def test_a_mode_that_was_left_for_no_good_reason_is_a_problem():
    assert "no chain" in mode_problems(modes([0, 0, 0, 0], [-100.0, -101.0]))[0]


def label_posterior(*answers):
    """Chains that are sure of one class of three for each of ten tasks."""
    probability = np.eye(3)[np.array(answers)]
    classes = {"cls": ["cat", "dog", "fox"]}
    return xr.Dataset({"probability": (("chain", "task", "cls"), probability)}, coords=classes)


def test_modes_that_cannot_be_weighed_are_named():
    draws = np.random.default_rng(0).normal(size=(4, 500, 3))
    draws[2:, :, 1] += 9
    here, there = [0] * 10, [0] * 6 + [2] * 4
    found = unweighed_modes([draws], label_posterior(here, here, there, there))
    assert found == (
        "chains stay in 2 modes, whose weights are not known: that of chains 0 and 1; that of "
        "chains 2 and 3, which gives 4 of 10 tasks another class than the first, mostly 'fox' for "
        "'cat' (4)"
    )


def test_chains_that_still_move_are_in_no_mode():
    draws = np.random.default_rng(0).normal(size=(4, 500, 3))
    draws[3, :, 1] += np.linspace(0, 9, 500)
    here, there = [0] * 10, [0] * 6 + [1] * 4
    found = unweighed_modes([draws], label_posterior(here, here, here, there))
    assert found.startswith("chains have not settled, they still move mostly between 'cat' and")
    assert "(4 of 10 tasks differ between chains 0 and 3)" in found


def test_few_draws_say_nothing_about_modes():
    draws = np.random.default_rng(0).normal(size=(4, 100, 3))
    draws[3] += 9
    assert unweighed_modes([draws], label_posterior(*[[0] * 10] * 4)) == ""
