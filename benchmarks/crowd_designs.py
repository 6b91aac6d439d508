"""The crowds of `crowds.py`: variants of public crowds, and simulated ones, each given a seed.

There are two kinds of simulated crowds. In 'independent' ones, the errors on a task are independent
given its class, as Dawid and Skene assume: long tails of workers, two or three labels per task,
rare classes, structured confusions of many classes, spammers, adversaries, types of workers, small
panels. In 'hard items', some tasks mislead the workers who judge them, also if one class is rare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import bayescrowd as bc
from bayescrowd import simulate

PUBLIC = ("bluebird", "rte", "dog", "trec")
"""The public crowds except web, whose published truth appears to come from its own workers."""


class Crowd(NamedTuple):
    """Labels and truth."""

    annotations: bc.Annotations
    truth: pd.Series


def public_crowds() -> dict[str, Crowd]:
    """The public crowds as they are."""
    data = {name: bc.load_dataset(name) for name in PUBLIC}
    return {name: Crowd(one.annotations, one.truth) for name, one in data.items()}


def public_variants(seed: int) -> dict[tuple[str, str], Crowd]:
    """Crowds made from the public ones, by kind and name."""
    public = public_crowds()
    made: dict[tuple[str, str], Crowd] = {}
    for name, crowd in public.items():
        for n in {"bluebird": (3, 5, 10), "trec": (2, 3)}.get(name, (2, 3, 5)):
            made["thinned", f"{name}, {n} labels per task"] = thin(crowd, n, seed)
        made["workers dropped", f"{name}, half of them"] = drop_workers(crowd, 0.5, seed)
    breeds = list(public["dog"].annotations.classes)
    for breed in breeds:
        others = [other for other in breeds if other != breed]
        one = merge_classes(public["dog"], {"other": others, "it": [breed]})
        for n in (3, 5, 8):
            made["merged", f"dog {breed} or not, {n} labels per task"] = thin(one, n, seed)
    three = merge_classes(public["dog"], {"x": breeds[:1], "y": breeds[1:2], "z": breeds[2:]})
    made["merged", "dog, two breeds as one"] = drop_workers(three, 0.2, seed)
    for first, second in combinations(breeds, 2):
        pair = keep_classes(public["dog"], (first, second), 5, seed)
        made["pairs", f"dog, {first} or {second}, 5 labels per task"] = pair
    for name, n in {"rte": 5, "trec": 3, "dog": 5}.items():
        for rare in public[name].annotations.classes:
            one = make_rare(public[name], rare, seed)
            made["made rare", f"{name}, few tasks of {rare}"] = one
            made["made rare", f"{name}, few tasks of {rare}, {n} labels"] = thin(one, n, seed)
    return made


def thin(crowd: Crowd, labels_per_task: int, seed: int) -> Crowd:
    """Keep a given number of random labels per task."""
    ann = crowd.annotations
    order = np.lexsort((np.random.default_rng([seed, 1]).random(ann.n_labels), ann.task_codes))
    rank = np.empty(ann.n_labels, dtype=int)
    rank[order] = np.arange(ann.n_labels) - ann.task_offsets[ann.task_codes[order]]
    return _keep_labels(crowd, rank < labels_per_task)


def drop_workers(crowd: Crowd, share: float, seed: int) -> Crowd:
    """Drop each worker with the same probability."""
    ann = crowd.annotations
    stays = np.random.default_rng([seed, 2]).random(ann.n_workers) >= share
    return _keep_labels(crowd, stays[ann.worker_codes])


def merge_classes(crowd: Crowd, groups: dict[str, Sequence[Any]]) -> Crowd:
    """Merge classes into groups with new names."""
    name_of = {label: name for name, labels in groups.items() for label in labels}
    frame = crowd.annotations.to_frame()
    frame["label"] = frame["label"].map(name_of)
    ann = bc.Annotations.from_frame(frame, classes=list(groups))
    return Crowd(ann, crowd.truth.map(name_of))


def keep_classes(crowd: Crowd, classes: Sequence[Any], labels_per_task: int, seed: int) -> Crowd:
    """Keep only some classes, as truth and as labels, and a given number of labels per task."""
    frame = crowd.annotations.to_frame()
    tasks = crowd.truth.index[crowd.truth.isin(classes)]
    frame = frame[frame["task"].isin(tasks) & frame["label"].isin(classes)]
    ann = bc.Annotations.from_frame(frame, classes=list(classes))
    return thin(Crowd(ann, crowd.truth[crowd.truth.index.isin(ann.tasks)]), labels_per_task, seed)


def make_rare(crowd: Crowd, rare: Any, seed: int) -> Crowd:
    """Keep the tasks of known truth, and of one class only 15 % of the tasks."""
    left_out = np.random.default_rng([seed, 3]).random(len(crowd.truth)) < 0.85
    tasks = crowd.truth.index[~(left_out & (crowd.truth == rare).to_numpy())]
    return _keep_labels(crowd, crowd.annotations.to_frame()["task"].isin(tasks).to_numpy())


def _keep_labels(crowd: Crowd, kept: np.ndarray) -> Crowd:
    ann = bc.Annotations.from_frame(
        crowd.annotations.to_frame()[kept], classes=list(crowd.annotations.classes)
    )
    return Crowd(ann, crowd.truth[crowd.truth.index.isin(ann.tasks)])


def _rows(right: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """Matrices [worker, true, observed]: `right` on the diagonal, the rest shared as `wrong`."""
    shared = wrong * (1 - np.eye(len(wrong)))
    shared = shared / shared.sum(axis=1, keepdims=True)
    return right[:, :, None] * np.eye(len(wrong)) + (1 - right)[:, :, None] * shared


def _accuracies(n_workers: int, n_classes: int, mean: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, 4])
    return np.clip(rng.normal(mean, 0.13, (n_workers, n_classes)), 0.1, 0.97)


def ordered_confusions(n_workers: int, n_classes: int, accuracy: float, seed: int) -> np.ndarray:
    """Matrices in which wrong answers are close to the right one."""
    distance = np.abs(np.arange(n_classes)[:, None] - np.arange(n_classes))
    return _rows(_accuracies(n_workers, n_classes, accuracy, seed), np.exp(-1.5 * distance))


def paired_confusions(n_workers: int, n_classes: int, accuracy: float, seed: int) -> np.ndarray:
    """Matrices in which most wrong answers are the other class of a pair."""
    wrong = np.full((n_classes, n_classes), 0.3 / (n_classes - 1))
    wrong[np.arange(n_classes), np.arange(n_classes) ^ 1] += 0.7
    return _rows(_accuracies(n_workers, n_classes, accuracy, seed), wrong)


def two_rate_confusions(
    n_workers: int, sensitivity: float, specificity: float, seed: int
) -> np.ndarray:
    """Matrices of two classes with different probabilities of the right answer."""
    rng = np.random.default_rng([seed, 5])
    means = (specificity, sensitivity)
    right = np.stack([rng.beta(10 * mean, 10 * (1 - mean), n_workers) for mean in means], axis=1)
    return _rows(right, np.ones((2, 2)))


def type_confusions(n_workers: int, n_classes: int, seed: int) -> np.ndarray:
    """Matrices of good workers, of some who miss the last class, and of some who give the first."""
    rng = np.random.default_rng([seed, 6])
    even = np.ones((n_classes, n_classes))
    good, blind = (_rows(np.full((1, n_classes), a), even)[0] for a in (0.9, 0.8))
    blind[-1] = np.full(n_classes, 0.4 / (n_classes - 1))
    blind[-1, 0] = 0.6
    lazy = np.full((n_classes, n_classes), 0.25 / n_classes) + 0.75 * np.eye(n_classes)[0]
    kinds = np.stack([matrix / matrix.sum(axis=1, keepdims=True) for matrix in (good, blind, lazy)])
    of_worker = kinds[rng.choice(3, n_workers, p=[0.4, 0.35, 0.25])]
    drawn = rng.standard_gamma(np.maximum(20 * of_worker, 0.05))
    return drawn / drawn.sum(axis=2, keepdims=True)


def _hard(data: bc.Dataset, seed: int, **options: Any) -> Crowd:
    made = simulate.with_hard_items(data, seed=seed, **options)
    return Crowd(made.annotations, made.truth)


def _crowd(seed: int, *sizes: int, **options: Any) -> Crowd:
    data = simulate.crowd(*sizes, seed=seed, **options)
    return Crowd(data.annotations, data.truth)


def _coins(seed: int, *sizes: int, **options: Any) -> Crowd:
    data = simulate.one_coin_crowd(*sizes, seed=seed, **options)
    return Crowd(data.annotations, data.truth)


RARE = [0.88, 0.12]

INDEPENDENT: dict[str, Callable[[int], Crowd]] = {
    "one coin": lambda s: _coins(s, 800, 60, 2, labels_per_task=5, accuracy=0.72),
    "one coin, 4 classes, 3 labels": lambda s: _coins(
        s, 900, 80, 4, labels_per_task=3, activity=1.0, accuracy=0.65
    ),
    "long tail, 3 labels": lambda s: _crowd(
        s, 1000, 250, 2, labels_per_task=3, activity=1.1, accuracy=0.75
    ),
    "long tail, 10 labels": lambda s: _crowd(
        s, 500, 150, 2, labels_per_task=10, activity=1.1, accuracy=0.65, concentration=8
    ),
    "2 labels": lambda s: _crowd(s, 1200, 60, 2, labels_per_task=2, activity=0.7, accuracy=0.78),
    "2 labels, 4 classes": lambda s: _crowd(
        s,
        *(1000, 60, 4),
        labels_per_task=2,
        activity=0.7,
        accuracy=0.75,
        prevalence=[0.4, 0.3, 0.2, 0.1],
    ),
    "rare class": lambda s: _crowd(
        s, 1500, 80, 2, labels_per_task=5, activity=0.8, accuracy=0.75, prevalence=RARE
    ),
    "rare class, 3 labels": lambda s: _crowd(
        s, 2000, 120, 2, labels_per_task=3, activity=1.0, accuracy=0.82, prevalence=[0.9, 0.1]
    ),
    "low sensitivity": lambda s: _crowd(
        s,
        *(1000, 60, 2),
        labels_per_task=7,
        activity=0.5,
        prevalence=[0.6, 0.4],
        confusions=two_rate_confusions(60, 0.5, 0.85, s),
    ),
    "rare class, low sensitivity": lambda s: _crowd(
        s,
        *(1500, 60, 2),
        labels_per_task=6,
        activity=0.8,
        prevalence=[0.85, 0.15],
        confusions=two_rate_confusions(60, 0.55, 0.92, s),
    ),
    "5 ordered classes": lambda s: _crowd(
        s, 700, 60, 5, labels_per_task=6, activity=0.8, confusions=ordered_confusions(60, 5, 0.6, s)
    ),
    "7 ordered classes, unequal": lambda s: _crowd(
        s,
        *(800, 40, 7),
        labels_per_task=4,
        activity=0.5,
        prevalence=[0.3, 0.2, 0.15, 0.12, 0.1, 0.08, 0.05],
        confusions=ordered_confusions(40, 7, 0.65, s),
    ),
    "10 classes in pairs": lambda s: _crowd(
        s,
        700,
        44,
        10,
        labels_per_task=4,
        activity=0.9,
        confusions=paired_confusions(44, 10, 0.6, s),
    ),
    "4 classes in pairs": lambda s: _crowd(
        s, 600, 50, 4, labels_per_task=8, activity=0.5, confusions=paired_confusions(50, 4, 0.55, s)
    ),
    "spammers": lambda s: _crowd(
        s, 800, 60, 3, labels_per_task=6, activity=0.6, spammers=0.4, accuracy=0.75
    ),
    "spammers, rare class": lambda s: _crowd(
        s,
        *(1200, 80, 2),
        labels_per_task=5,
        activity=0.8,
        spammers=0.3,
        accuracy=0.8,
        prevalence=[0.85, 0.15],
    ),
    "adversaries": lambda s: _crowd(
        s,
        *(800, 60, 2),
        labels_per_task=7,
        activity=0.6,
        spammers=0.2,
        adversaries=0.15,
        accuracy=0.8,
    ),
    "types, 3 classes": lambda s: _crowd(
        s, 800, 70, 3, labels_per_task=5, activity=0.8, confusions=type_confusions(70, 3, s)
    ),
    "types, 4 classes, 3 labels": lambda s: _crowd(
        s, 1000, 90, 4, labels_per_task=3, activity=0.9, confusions=type_confusions(90, 4, s)
    ),
    "panel of 8": lambda s: _crowd(
        s, 600, 8, 2, accuracy=0.75, concentration=8, prevalence=[0.65, 0.35]
    ),
}

HARD: dict[str, Callable[[int], Crowd]] = {
    "balanced": lambda s: _hard(
        simulate.crowd(800, 60, 2, labels_per_task=5, activity=0.8, accuracy=0.8, seed=s),
        s,
        share=0.3,
        expertise=0.5,
    ),
    "panel of 12": lambda s: _hard(
        simulate.crowd(500, 12, 2, accuracy=0.8, concentration=8, seed=s),
        s,
        share=0.35,
        expertise=0.5,
    ),
    "rare class": lambda s: _hard(_rare(s, 5), s, share=0.25, pull=0.4, expertise=0.5),
    "hard negatives": lambda s: _hard(
        _rare(s, 5, concentration=15), s, share=[0.3, 0.05], pull=0.4, expertise=0.4
    ),
    "hard negatives, 10 labels": lambda s: _hard(
        _rare(s, 10, concentration=15), s, share=[0.3, 0.1], pull=0.4, expertise=0.4
    ),
    "hard negatives, nobody immune": lambda s: _hard(
        _rare(s, 5, concentration=15), s, share=[0.3, 0.05], pull=0.4
    ),
    "rare class, 3 labels": lambda s: _hard(
        _rare(s, 3, accuracy=0.88), s, share=[0.2, 0.3], pull=0.45, expertise=0.3
    ),
    "hard positives": lambda s: _hard(
        _rare(s, 5, accuracy=0.88), s, share=[0.05, 0.5], expertise=0.5
    ),
    "4 unequal classes": lambda s: _hard(
        simulate.crowd(
            *(800, 70, 4),
            labels_per_task=5,
            activity=0.8,
            accuracy=0.75,
            prevalence=[0.5, 0.25, 0.15, 0.1],
            seed=s,
        ),
        s,
        share=0.3,
        expertise=0.4,
    ),
    "6 classes": lambda s: _hard(
        simulate.crowd(600, 40, 6, labels_per_task=9, activity=0.8, accuracy=0.7, seed=s),
        s,
        share=0.4,
        expertise=0.5,
    ),
    "panel of 9 models": lambda s: _hard(
        simulate.crowd(
            700, 9, 3, accuracy=0.75, concentration=30, prevalence=[0.5, 0.3, 0.2], seed=s
        ),
        s,
        share=0.4,
        expertise=0.2,
    ),
    "spammers, rare class": lambda s: _hard(
        _rare(s, 6, spammers=0.25), s, share=[0.25, 0.15], pull=0.4, expertise=0.4
    ),
}

SIMULATED = {"independent": INDEPENDENT, "hard items": HARD}
"""Designs by kind."""


def _rare(seed: int, labels_per_task: int, **options: Any) -> bc.Dataset:
    chosen = {"accuracy": 0.85, "prevalence": RARE, "activity": 0.8, **options}
    return simulate.crowd(1500, 70, 2, labels_per_task=labels_per_task, seed=seed, **chosen)
