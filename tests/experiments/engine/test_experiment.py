import dataclasses

import pytest

import bayescrowd as bc
from bayescrowd.experiments.engine.experiment import Unit, settings_of


def test_units_go_seed_by_seed_and_fixed_parts_once(toy):
    assert toy.experiment.units(2) == [Unit("fixed", 0), Unit("drawn", 0), Unit("drawn", 1)]


@pytest.mark.parametrize("field", ["parts", "cells"])
def test_names_must_be_unique(toy, field):
    doubled = getattr(toy.experiment, field) * 2
    with pytest.raises(ValueError, match="have the same name"):
        dataclasses.replace(toy.experiment, **{field: doubled})


def test_every_part_has_cells_and_every_cell_a_part(toy):
    with pytest.raises(ValueError, match="every part to have a cell"):
        dataclasses.replace(toy.experiment, parts=toy.experiment.parts[:1])
    with pytest.raises(ValueError, match="every part to have a cell"):
        dataclasses.replace(toy.experiment, cells=toy.experiment.cells[:2])


def test_settings_write_defaults_out_but_not_the_seed():
    assert settings_of(bc.MajorityVote(seed=5)) == "MajorityVote(weights=None)"
    assert "n_components=3, " in settings_of(bc.StagewiseEM(3))
