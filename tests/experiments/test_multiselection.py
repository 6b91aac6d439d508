"""Multi-selection's figures: small runs, made-up outcomes for the claims, the stand-ins."""

from importlib import import_module

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from bayescrowd import ct_slices
from bayescrowd.experiments import multiselection_errors, multiselection_figure3
from bayescrowd.experiments.journal import Record
from bayescrowd.experiments.multiselection_errors import Population, errors_by_budget
from bayescrowd.experiments.multiselection_people import ATTRIBUTES, people, population
from bayescrowd.experiments.outcome import outcomes_of

FIGURES = ["figure3", "figures12", "figure4"]


def experiment(name):
    return import_module(f"bayescrowd.experiments.multiselection_{name}").EXPERIMENT


def outcomes(made, value, n_seeds=3):
    records = {
        unit: Record(
            {
                cell.id: float(value(cell.id.row, cell.id.column, unit.seed))
                for cell in made.cells
                if cell.part == unit.part
            },
            0.1,
        )
        for unit in made.units(n_seeds)
    }
    return outcomes_of(made, records, n_seeds)


def claims(name, value):
    made = experiment(name)
    return {claim.text: claim for claim in made.claims(outcomes(made, value))}


@pytest.mark.parametrize("name", FIGURES)
def test_name_average_and_picture(name):
    made = experiment(name)
    assert made.name == f"multiselection-{name}"
    assert made.average == "mean"
    assert made.n_seeds == 50
    figure = made.draw(outcomes(made, lambda row, column, seed: 10 + seed))
    FigureCanvasAgg(figure).draw()
    assert figure.axes


def order(row):
    return {"Full": 1.0, "Scoring": 2.0, "Averages": 1.5, "Copies": 3.0}.get(row.split(", ")[0], 4)


def test_figure_3_claims():
    def value(row, column, seed):
        return order(row) + 0.1 * seed + (int(column[2:]) if column.startswith("k=") else 0)

    assert all(claim.holds for claim in claims("figure3", value).values())
    flipped = claims("figure3", lambda row, column, seed: -value(row, column, seed))
    assert not any(claim.holds for text, claim in flipped.items() if "small budgets" not in text)


def test_figure_4_claims():
    def value(row, column, seed):
        method = row.rsplit(", ", 1)[1]
        return order(method) + seed if "400" in row else -order(method) + seed

    assert all(claim.holds for claim in claims("figure4", value).values())
    flipped = claims("figure4", lambda row, column, seed: -value(row, column, seed))
    assert not any(claim.holds for claim in flipped.values())


def test_figures_1_and_2_need_every_corner():
    places = {name: place for place, name in enumerate(ATTRIBUTES)}

    def spread(row, column, seed):
        place = places[row]
        return place // 2 if column == "v/sigma" else place % 2 * 5 + 1

    assert all(claim.holds for claim in claims("figures12", spread).values())
    tied = claims("figures12", lambda row, column, seed: places[row])
    assert not any(claim.holds for claim in tied.values())


def test_slices_are_judged_by_one_of_eight_bins():
    slices = multiselection_figure3.slices(multiselection_figure3.STAND_IN)
    bins, target = multiselection_figure3.stand_in()
    assert slices.n_attributes == 48
    np.testing.assert_array_equal(slices.target, target)
    judged = slices.judge(np.random.default_rng(0), 5, 3)
    own = bins[:, 40:48]
    assert all(np.isin(judged[i], own[i]).all() for i in range(0, 2000, 97))


def test_the_order_of_methods_on_the_first_rows():
    """One tenth of figure 3: the paper's order at budgets where splits differ little."""
    if not ct_slices.is_local(ct_slices.EXCERPT):
        pytest.skip("the first 682 rows are not on this machine: set BAYESCROWD_DATA")
    slices = multiselection_figure3.slices(ct_slices.EXCERPT)
    errors = [
        errors_by_budget(
            slices,
            n_training=300,
            n_test=500,
            k=2,
            budgets=(30, 80),
            methods=("Full", "Scoring", "Averages", "Copies"),
            seed=(seed,),
        )
        for seed in range(4)
    ]
    mean = {key: np.mean([e[key] for e in errors]) for key in errors[0]}
    # Independent reference: 26.3, 29.6, 31.8 at 30; 20.3, 27.5, 28.2 at 80; errors of four
    # splits 1.2 each, and a difference of the same splits 0.6.
    assert mean["Full", 30] == pytest.approx(26.3, abs=4)
    assert mean["Full", 80] == pytest.approx(20.3, abs=4)
    assert mean["Full", 80] < mean["Averages", 80] < 35
    assert mean["Full", 30] < mean["Averages", 30] < mean["Copies", 30] + 2


def test_later_judgements_begin_with_the_pilot():
    drawn = []

    def judge(rng, attribute, number):
        drawn.append((attribute, number))
        return rng.normal(size=(6, number))

    crowd = multiselection_errors._Crowd(
        Population(np.arange(6.0), judge, 2, None), np.random.default_rng(0), 2
    )
    first = crowd.judgements(0, 2)
    np.testing.assert_array_equal(crowd.judgements(0, 5)[:, :2], first)
    assert drawn == [(0, 2)] * 3
    averages = crowd.averages(np.array([3, 0]))
    np.testing.assert_allclose(averages[:, 0], crowd.judgements(0, 3).mean(axis=1))


def test_the_crowd_of_photos():
    persons = people()
    assert persons.score.shape == (880, 39)
    photos = population("weight", persons)
    rng = np.random.default_rng(0)
    male = photos.judge(rng, ATTRIBUTES.index("male"), 2)
    assert set(np.unique(male)) == {0.0, 1.0}
    assert (male[:, 0] == male[:, 1]).mean() > 0.98
    guessed = photos.judge(rng, ATTRIBUTES.index("estimated weight"), 50).mean(axis=1)
    assert np.corrcoef(guessed, persons.weight)[0, 1] > 0.85
    assert photos.costs.iloc[-1] == 4


@pytest.mark.parametrize("name", ["figures12", "figure4"])
def test_every_cell_is_measured(name):
    made = experiment(name)
    part = made.parts[-1].name
    measured = made.measure(part, 0)
    assert set(measured) == {cell.id for cell in made.cells if cell.part == part}
    assert np.isfinite(list(measured.values())).all()
