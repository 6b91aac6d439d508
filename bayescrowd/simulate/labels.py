"""Labels drawn from confusion matrices, given who judges what."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.data.annotations import Annotations
from bayescrowd.data.dataset import CrowdParameters, Dataset
from bayescrowd.simulate.assignment import Design, judged_pairs

__all__ = ["Streams", "draw_dataset", "split_streams"]


class Streams(NamedTuple):
    """A random generator for each kind of choice."""

    worker: np.random.Generator
    """Generator of confusion matrices and of the kinds of workers."""
    truth: np.random.Generator
    """Generator of true classes."""
    design: np.random.Generator
    """Generator of who judges what."""
    label: np.random.Generator
    """Generator of labels."""


def split_streams(seed: int) -> Streams:
    """Independent random generators that all follow from one seed."""
    worker, truth, design, label = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(4))
    return Streams(worker=worker, truth=truth, design=design, label=label)


def draw_dataset(
    name: str,
    description: str,
    parameters: CrowdParameters,
    design: Design,
    streams: Streams,
) -> Dataset:
    """Draw true classes, judged pairs and labels.

    Args:
        name: name of the data set.
        description: description of the data set.
        parameters: prevalence and confusion matrices from which to draw.
        design: who judges what.
        streams: the random generators.

    Raises:
        ValueError: the design leaves no judged pair.
    """
    n_classes = len(parameters.prevalence)
    truth = streams.truth.choice(n_classes, design.n_tasks, p=parameters.prevalence)
    thresholds = _thresholds(parameters.confusions)
    tasks: list[Int[np.ndarray, " _"]] = []
    workers: list[Int[np.ndarray, " _"]] = []
    labels: list[Int[np.ndarray, " _"]] = []
    for task, worker in judged_pairs(design, streams.design):
        tasks.append(task)
        workers.append(worker)
        labels.append(_draw_labels(truth[task], worker, thresholds, streams.label))
    if sum(map(len, tasks)) == 0:
        raise ValueError("the density or the mask leaves no judged pair; expected at least one")
    annotations = Annotations(  # in order and within the vocabularies by construction
        _join(tasks),
        _join(workers),
        _join(labels),
        pd.RangeIndex(design.n_tasks, name="task"),
        pd.RangeIndex(design.n_workers, name="worker"),
        pd.RangeIndex(n_classes, name="class"),
    )
    return Dataset(
        annotations=annotations,
        truth=pd.Series(truth, index=annotations.tasks, name="truth"),
        description=description,
        name=name,
        source="bayescrowd.simulate",
        parameters=parameters,
    )


def _join(blocks: list[np.ndarray]) -> Int[np.ndarray, " label"]:
    column = np.concatenate(blocks)
    blocks.clear()
    column.flags.writeable = False
    return column


def _thresholds(
    confusions: Float[np.ndarray, "worker cls cls"],
) -> Float[np.ndarray, "worker cls boundary"]:
    """Boundaries that divide the unit interval among the labels, by worker and true class."""
    cumulative = np.cumsum(confusions, axis=2)
    # The last value becomes exactly one: a class of probability zero must never be drawn.
    cumulative /= cumulative[:, :, -1:]
    return cumulative[:, :, :-1]


def _draw_labels(
    truth: Int[np.ndarray, " label"],
    worker: Int[np.ndarray, " label"],
    thresholds: Float[np.ndarray, "worker cls boundary"],
    rng: np.random.Generator,
) -> Int[np.ndarray, " label"]:
    """Invert the cumulative distribution boundary by boundary, without a labels x classes array."""
    uniform = rng.random(len(worker))
    label = np.zeros(len(worker), dtype=np.int32)
    for boundary in np.moveaxis(thresholds, 2, 0):
        label += boundary[worker, truth] <= uniform
    return label
