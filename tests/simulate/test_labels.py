"""Labels drawn from confusion matrices: streams are independent, zeros are never drawn."""

import numpy as np
import pytest

from bayescrowd.data.dataset import CrowdParameters
from bayescrowd.simulate.assignment import make_design
from bayescrowd.simulate.labels import draw_dataset, split_streams


def draw(confusions, **design):
    matrices = np.asarray(confusions, dtype=float)
    n_workers, n_classes, _ = matrices.shape
    parameters = CrowdParameters(
        np.full(n_classes, 1 / n_classes), matrices, np.full(n_workers, "honest")
    )
    chosen = {"labels_per_task": None, "density": None, "mask": None, "activity": 0, **design}
    return draw_dataset(
        "drawn",
        "Made up here.",
        parameters,
        make_design(300, n_workers, **chosen),
        split_streams(5),
    )


def test_certain_workers_give_the_labels_of_their_rows():
    swapped = [[0, 1], [1, 0]]
    data = draw([np.eye(2), swapped])
    labels = data.annotations.to_frame().pivot(index="task", columns="worker", values="label")
    assert (labels[0] == data.truth).all()
    assert (labels[1] == 1 - data.truth).all()


def test_the_truth_does_not_depend_on_the_design():
    matrices = np.full((4, 3, 3), 1 / 3)
    assert draw(matrices).truth.equals(draw(matrices, labels_per_task=2).truth)


def test_streams_of_a_seed_differ_from_each_other_and_repeat():
    first, second = split_streams(1), split_streams(1)
    numbers = [stream.random() for stream in first]
    assert len(set(numbers)) == len(first)
    assert [stream.random() for stream in second] == numbers


def test_a_design_without_pairs():
    with pytest.raises(ValueError, match="leaves no judged pair; expected at least one"):
        draw([np.eye(2)], density=0.0)
