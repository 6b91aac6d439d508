"""A simulated crowd that judges photos of people, in place of judgements that are not public.

Sabato and Kalai 2013, section 4, describe 880 photos of people of known height and weight, judged
on 37 binary attributes and by numerical estimates of height and weight, which cost four times as
much; their figures 1 and 2 show that attributes are useful or not and stable or noisy in all
combinations. The attributes below and their numbers are ours.

A person has a sex, a height and a weight that depend on it, and for each attribute a disposition
of their own. A judge says yes if

    height, weight and sex (standardised, times the attribute's loadings) + disposition + the
    judge's own error

exceeds the attribute's threshold. An estimate is the person's height or weight, plus an error that
the photo induces in all judges, plus the judge's own error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayescrowd.experiments.multiselection.errors import Population

__all__ = ["ATTRIBUTES", "COSTS", "N_PEOPLE", "PhotoSubjects", "draw_people", "population"]

N_PEOPLE = 880
ESTIMATE_COST = 4.0


class PhotoSubjects(NamedTuple):
    """The people in the photos."""

    height: Float[np.ndarray, " object"]
    """Height in centimetres."""
    weight: Float[np.ndarray, " object"]
    """Weight in kilograms."""
    score: Float[np.ndarray, "object attribute"]
    """The score of each attribute that judges see, before their own error."""


class _Binary(NamedTuple):
    """A yes-or-no question."""

    name: str
    """The attribute that it asks about."""
    height: float
    """Loading on height."""
    weight: float
    """Loading on weight."""
    male: float
    """Loading on sex."""
    own: float
    """Standard deviation of the person's disposition."""
    error: float
    """Standard deviation of a judge's error."""
    threshold: float = 0.0
    """The answer is yes above this value."""


_BINARY = tuple(
    _Binary(*row)
    for row in (
        ("male", 0.1, 0.1, 2.0, 0.1, 0.2),
        ("tall", 1.6, 0.1, 0.3, 0.5, 1.0, 0.8),
        ("short", -1.5, 0.0, -0.4, 0.6, 1.1, 0.8),
        ("long legs", 1.0, -0.4, 0.0, 0.8, 1.2, 0.4),
        ("overweight", -0.4, 2.0, 0.0, 0.4, 0.5, 0.6),
        ("obese", -0.4, 2.0, 0.0, 0.3, 0.5, 1.8),
        ("thin", 0.3, -1.8, -0.2, 0.5, 0.6, 0.9),
        ("underweight", 0.3, -1.5, -0.2, 0.4, 0.9, 2.0),
        ("big belly", -0.2, 1.7, 0.2, 0.7, 0.5, 0.8),
        ("round face", -0.2, 1.1, 0.0, 0.8, 0.9, 0.6),
        ("muscular", 0.2, 0.3, 0.8, 0.8, 0.8, 1.2),
        ("broad shoulders", 0.4, 0.6, 0.8, 0.6, 1.0, 0.7),
        ("athletic", 0.2, -0.6, 0.2, 0.8, 1.2, 0.7),
        ("attractive", 0.1, -0.6, -0.3, 0.9, 1.8, 0.3),
        ("feminine", -0.3, -0.2, -1.8, 0.4, 0.6, 0.4),
        ("intimidating", 0.4, 0.6, 0.6, 0.5, 2.0, 1.4),
        ("beard", 0.0, 0.1, 1.2, 1.2, 0.2, 1.6),
        ("long hair", 0.0, 0.0, -1.6, 1.0, 0.3, 0.5),
        ("bald", 0.0, 0.2, 0.8, 1.0, 0.2, 1.8),
        ("glasses", 0.0, 0.1, 0.0, 2.0, 0.1, 0.9),
        ("tattoo", 0.0, 0.0, 0.0, 1.8, 0.3, 2.2),
        ("hat", 0.0, 0.0, 0.2, 2.0, 0.1, 1.7),
        ("sunglasses", 0.0, 0.0, 0.0, 2.0, 0.1, 1.9),
        ("smiling", 0.0, 0.0, -0.3, 1.5, 0.5),
        ("standing", 0.0, -0.1, 0.0, 2.0, 0.2, -1.4),
        ("whole body", 0.0, 0.0, 0.0, 2.0, 0.3, -0.5),
        ("outdoors", 0.0, 0.0, 0.0, 2.0, 0.2, 0.1),
        ("alone", 0.0, 0.0, 0.0, 2.0, 0.1, -1.5),
        ("young", 0.0, -0.3, 0.0, 1.4, 0.8, 0.2),
        ("old", 0.0, 0.2, 0.1, 1.3, 0.7, 1.2),
        ("fashionable", 0.0, -0.2, -0.3, 0.9, 2.0, 0.4),
        ("loose clothes", 0.0, 0.3, 0.1, 1.0, 1.5, 0.3),
        ("friendly", 0.0, 0.0, -0.2, 0.8, 2.2, -0.4),
        ("confident", 0.1, -0.1, 0.1, 0.6, 2.4, -0.3),
        ("intelligent", 0.0, 0.0, 0.0, 0.5, 2.5),
        ("trustworthy", 0.0, 0.0, -0.1, 0.4, 2.6, -0.2),
        ("good photo", 0.0, 0.0, 0.0, 0.8, 2.0, 0.3),
    )
)
ATTRIBUTES = (*(binary.name for binary in _BINARY), "estimated height", "estimated weight")
COSTS = pd.Series([1.0] * len(_BINARY) + [ESTIMATE_COST] * 2, index=range(len(ATTRIBUTES)))
_ESTIMATE_BIAS, _ESTIMATE_ERROR = (4.0, 6.0), (5.0, 9.0)
"""Standard deviations of the error that a photo induces in all judges, and of each judge's own
error: for heights in centimetres, for weights in kilograms."""


def draw_people(seed: int = 0) -> PhotoSubjects:
    """Draw the people in the photos."""
    rng = np.random.default_rng(seed)
    male = (rng.random(N_PEOPLE) < 0.5).astype(float)
    height = 163 + 13 * male + 7 * rng.normal(size=N_PEOPLE)
    stoutness = rng.gamma(6.0, 1.2, size=N_PEOPLE) + 19  # body mass index
    weight = stoutness * (height / 100) ** 2
    standard = [(v - v.mean()) / v.std() for v in (height, weight, male)]
    loadings = np.array([[b.height, b.weight, b.male] for b in _BINARY]).T
    own = np.array([b.own for b in _BINARY]) * rng.normal(size=(N_PEOPLE, len(_BINARY)))
    believed = np.column_stack([height, weight]) + _ESTIMATE_BIAS * rng.normal(size=(N_PEOPLE, 2))
    score = np.column_stack([np.column_stack(standard) @ loadings + own, believed])
    return PhotoSubjects(height, weight, score)


def population(target: str, people: PhotoSubjects | None = None) -> Population:
    """The people as objects that the crowd can judge.

    Args:
        target: the value to be predicted, 'height' or 'weight'.
        people: the people in the photos; those drawn with seed 0 if None.
    """
    drawn = draw_people() if people is None else people

    def judge(rng: np.random.Generator, attribute: int, number: int) -> np.ndarray:
        seen = drawn.score[:, attribute, None]
        error = rng.normal(size=(len(seen), number))
        if attribute >= len(_BINARY):
            return seen + _ESTIMATE_ERROR[attribute - len(_BINARY)] * error
        binary = _BINARY[attribute]
        return (seen + binary.error * error > binary.threshold).astype(float)

    values = drawn.height if target == "height" else drawn.weight
    return Population(values, judge, len(ATTRIBUTES), COSTS)
