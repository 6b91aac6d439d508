import numpy as np

from bayescrowd.experiments.multiselection.figures12 import EXPERIMENT
from bayescrowd.experiments.multiselection.people import ATTRIBUTES


def test_claims_need_every_corner(claims):
    places = {name: place for place, name in enumerate(ATTRIBUTES)}

    def spread(row, column, seed):
        place = places[row]
        return place // 2 if column == "v/sigma" else place % 2 * 5 + 1

    assert all(claim.holds for claim in claims(EXPERIMENT, spread).values())
    tied = claims(EXPERIMENT, lambda row, column, seed: places[row])
    assert not any(claim.holds for claim in tied.values())


def test_every_cell_is_measured():
    measured = EXPERIMENT.measure("crowd", 0)
    assert set(measured) == {cell.id for cell in EXPERIMENT.cells}
    assert np.isfinite(list(measured.values())).all()


def test_means_over_50_crowds_and_picture(drawn):
    assert (EXPERIMENT.average, EXPERIMENT.n_seeds) == ("mean", 50)
    assert len(drawn(EXPERIMENT).axes) == 2
