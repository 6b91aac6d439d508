import pytest

from bayescrowd.experiments.stagewise.figure1 import (
    EXPERIMENT,
    selectivity,
    simulate_recording,
    tuning_curves,
)


def test_settings():
    (part,) = EXPERIMENT.parts
    assert "StagewiseEM(" in part.settings
    assert "MDPD(" in part.settings
    assert "seed" not in part.settings


def test_tuned_neurons_prefer_their_orientation():
    drawn = simulate_recording(0)
    rates = tuning_curves(drawn.spikes.astype(float), drawn.orientation)
    # The first neuron prefers 0 degrees: 0.55 there, 0.05 across; standard errors below 0.08.
    assert rates[0, 0] == pytest.approx(0.55, abs=4 * 0.08)
    assert rates[6, 0] == pytest.approx(0.05, abs=4 * 0.04)
    assert selectivity(rates[:, drawn.is_tuned]) > 0.4
    assert selectivity(rates[:, ~drawn.is_tuned]) < 0.2


def test_claims_need_selective_classes(claims):
    def sharp(row, column, seed):
        if column == "selectivity":
            return 0.5 if row == "stagewise EM" else 0.1
        return 4

    assert all(claim.holds for claim in claims(EXPERIMENT, sharp).values())
    flat = claims(EXPERIMENT, lambda row, column, seed: 0.4 if column == "selectivity" else 4)
    assert [claim.holds for claim in flat.values()] == [False, False, True]
