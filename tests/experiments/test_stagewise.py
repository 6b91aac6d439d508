"""The experiments on stagewise EM: what they measure, claim and draw."""

from importlib import import_module

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from bayescrowd import simulate
from bayescrowd.experiments.experiment import CellId
from bayescrowd.experiments.journal import Record
from bayescrowd.experiments.outcome import outcomes_of
from bayescrowd.experiments.stagewise_crowds import (
    figure3_crowd,
    percent_wrong,
    stagewise,
    told,
    true_model,
)
from bayescrowd.experiments.stagewise_figure1 import recording, selectivity, tuning_curves

FIGURES = ("figure1", "figure3", "figure4", "figure5", "table1")


def experiment(name):
    return import_module(f"bayescrowd.experiments.stagewise_{name}").EXPERIMENT


def outcomes(made, value, n_seeds=2):
    """Made-up values: `value(row, column, seed)`."""
    records = {
        unit: Record(
            {
                cell.id: float(value(*cell.id, unit.seed))
                for cell in made.cells
                if cell.part == unit.part
            },
            1.0,
        )
        for unit in made.units(n_seeds)
    }
    return outcomes_of(made, records, n_seeds)


def claims(name, value):
    made = experiment(name)
    return {claim.text: claim for claim in made.claims(outcomes(made, value))}


@pytest.mark.parametrize("name", FIGURES)
def test_name_and_settings(name):
    made = experiment(name)
    assert made.name == f"stagewise-{name}"
    assert all("StagewiseEM(" in part.settings for part in made.parts if "EM" not in part.name)
    assert "seed" not in made.parts[0].settings


@pytest.mark.parametrize("name", ["figure3", "figure5", "table1"])
def test_picture_can_be_drawn(name):
    made = experiment(name)
    figure = made.draw(outcomes(made, lambda row, column, seed: 10 + seed))
    FigureCanvasAgg(figure).draw()
    assert figure.axes


def test_true_model_by_hand():
    data = simulate.one_coin_crowd(1, 2, accuracy=[0.9, 0.6], seed=0)
    first, second = data.annotations.label_codes
    chances = [0.5 * (0.9 if first == k else 0.1) * (0.6 if second == k else 0.4) for k in range(2)]
    model = true_model(data)
    assert model.log_likelihood == pytest.approx(np.log(sum(chances)))
    np.testing.assert_allclose(model.probas.loc[0], np.array(chances) / sum(chances))


def test_true_model_needs_parameters():
    data = simulate.one_coin_crowd(5, 3, seed=0)
    with pytest.raises(ValueError, match="was not simulated"):
        true_model(data._replace(parameters=None))
    with pytest.raises(ValueError, match="has no truth"):
        percent_wrong(true_model(data).probas, data._replace(truth=None))


def test_settings_are_told_without_the_seed():
    assert told(stagewise(3)).startswith("StagewiseEM(")
    assert "n_iter=20" in told(stagewise(3))
    assert "seed" not in told(stagewise(3))


# Figure 1.


def test_tuned_neurons_prefer_their_orientation():
    drawn = recording(0)
    rates = tuning_curves(drawn.spikes.astype(float), drawn.orientation)
    # The first neuron prefers 0 degrees: 0.55 there, 0.05 across; standard errors below 0.08.
    assert rates[0, 0] == pytest.approx(0.55, abs=4 * 0.08)
    assert rates[6, 0] == pytest.approx(0.05, abs=4 * 0.04)
    assert selectivity(rates[:, drawn.is_tuned]) > 0.4
    assert selectivity(rates[:, ~drawn.is_tuned]) < 0.2


def test_figure_1_needs_selective_classes():
    def sharp(row, column, seed):
        if column == "selectivity":
            return 0.5 if row == "stagewise EM" else 0.1
        return 4

    assert all(claim.holds for claim in claims("figure1", sharp).values())
    flat = claims("figure1", lambda row, column, seed: 0.4 if column == "selectivity" else 4)
    assert [claim.holds for claim in flat.values()] == [False, False, True]


# Figures 3 and 4.


def figure_3(size=12, likelihood=-90.0, refined=1.3, components=3):
    def value(row, column, seed):
        made_up = {
            "log-likelihood": -90.5 if column == "true model" else likelihood,
            "max norm": 0.1 if column == "0" else 0.02,
            "size of S": size,
            "error, refined": refined,
            "components, printed rule": components,
        }
        return made_up.get(row, 1.0)

    return claims("figure3", value)


def test_figure_3_claims():
    found = figure_3()
    assert not found["|S| < 10"].holds
    assert "12 to 12, median 12" in found["|S| < 10"].evidence
    assert all(claim.holds for text, claim in found.items() if text != "|S| < 10")
    assert figure_3(size=9)["|S| < 10"].holds


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"size": 16}, "|S| is at most 15"),
        ({"likelihood": -91.0}, "the log-likelihood reaches that of the true model"),
        (
            {"refined": 1.6},
            "refined, the mean error is at most 0.5 points above the true model's",
        ),
        ({"components": 2}, "the printed rule finds all components"),
    ],
)
def test_control_figure_3_claims_can_fail(changed, text):
    assert not figure_3(**changed)[text].holds


@pytest.mark.slow
def test_figure_4_is_measured_and_drawn():
    made = experiment("figure4")
    values = made.measure("draw", 0)
    assert set(values) == {cell.id for cell in made.cells}
    assert values[CellId("size of S", "0")] == 0
    assert values[CellId("size of S", "7")] >= values[CellId("size of S", "3")] >= 3
    rows = ("mean information, first 30", "largest information, first 30")
    for row in rows:
        assert values[CellId(row, "7")] < values[CellId(row, "0")] / 2
    figure = made.draw([])
    assert sum(axes.get_title(loc="left").startswith("S at") for axes in figure.axes) == 3


def test_figure_3_crowd_is_the_papers():
    data = figure3_crowd(0)
    assert (data.annotations.n_tasks, data.annotations.n_workers) == (1000, 100)
    assert data.parameters.confusions[0, 0, 0] == pytest.approx(0.7)
    assert data.parameters.confusions[29, 0, 0] == pytest.approx(0.45)


# Figure 5.


def errors(stage):
    def value(row, column, seed):
        return {
            "true model": 10,
            "Stage-EM": stage(float(column)),
            "MV-EM": 15,
            "Spec-EM": 16,
        }.get(row, 20)

    return claims("figure5", value)


def test_figure_5_says_where_the_paper_is_not_borne_out():
    found = errors(lambda alpha: 12 if alpha <= 0.1 else 15.5)
    claim = found["stage-EM consistently outperforms the other methods"]
    assert not claim.holds
    assert "0.125: 15.5 against 15.0" in claim.evidence
    assert "0.1:" not in claim.evidence
    assert found["at alpha = 0.05, stage-EM outperforms the other methods"].holds
    assert not found["stage-EM stays close to the benchmark for all alpha"].holds


def test_figure_5_claims_hold_for_a_better_method():
    assert all(claim.holds for claim in errors(lambda alpha: 11).values())


# Table 1.


def test_bluebird_of_table_1(crowd):
    crowd("bluebird")
    made = experiment("table1")
    values = made.measure("Bird, StageEM", 0)
    published = {cell.id: cell.published for cell in made.cells if cell.part == "Bird, StageEM"}
    assert {id_: round(value, 2) for id_, value in values.items()} == published


def test_dog_of_table_1(crowd):
    crowd("dog")
    made = experiment("table1")
    values = made.measure("Dog, StageEM", 0)
    assert values[CellId("StageEM, |S|", "Dog")] == 14
    # Published: 20.69 % and 16.73 %, on 52 workers that the paper does not name.
    # It was 19.83 % while a split's Hessian was taken before its pair entered the informative set.
    assert values[CellId("StageEM", "Dog")] == pytest.approx(20.20, abs=0.3)
    assert values[CellId("StageEM-refine", "Dog")] == pytest.approx(15.86, abs=0.5)


def test_table_1_claims():
    def value(row, column, seed):
        made_up = {"StageEM": 18.0, "StageEM, |S|": 11, "MV-EM": 15.0, "Spec-EM": 15.3}
        return made_up.get(row, 15.2)

    assert all(claim.holds for claim in claims("table1", value).values())
    many = claims("table1", lambda row, column, seed: 30.0)
    assert [claim.holds for claim in many.values()] == [False, True, False] * 2
