import numpy as np

from bayescrowd.experiments.multiselection.figure4 import EXPERIMENT


def test_claims(claims):
    order = {"Full": 1.0, "Scoring": 2.0, "Averages": 1.5, "Copies": 3.0, "estimates only": 4.0}

    def value(row, column, seed):
        method = row.rsplit(", ", 1)[1]
        return order[method] + seed if "400" in row else -order[method] + seed

    assert all(claim.holds for claim in claims(EXPERIMENT, value).values())
    flipped = claims(EXPERIMENT, lambda row, column, seed: -value(row, column, seed))
    assert not any(claim.holds for claim in flipped.values())


def test_every_cell_of_a_part_is_measured():
    part = EXPERIMENT.parts[-1].name
    measured = EXPERIMENT.measure(part, 0)
    assert set(measured) == {cell.id for cell in EXPERIMENT.cells if cell.part == part}
    assert np.isfinite(list(measured.values())).all()


def test_means_over_50_splits_and_picture(drawn):
    assert (EXPERIMENT.average, EXPERIMENT.n_seeds) == ("mean", 50)
    assert len(drawn(EXPERIMENT).axes) == 4
