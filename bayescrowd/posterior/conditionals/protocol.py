"""What Gibbs sampling needs to know about a model.

Each module of this folder bears the name of a model and offers its `CONDITIONALS`;
`bayescrowd.posterior.gibbs` finds them there by the model's name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Conditionals"]


class Conditionals(NamedTuple):
    """The conditional draws of a model's Gibbs sampler, and where its chains start."""

    first_params: Callable[..., Any]
    """(prior, *, n_classes, **sizes) -> `Params` from which a chain starts."""
    draw_params: Callable[..., Any]
    """(rng_key, truth, params, data, prior) -> `Params` given the classes. Models of features also
    take the keyword `n_values`, the number of values of each feature."""
    log_joint: Callable[..., Any]
    """(params, data, *, n_items) -> log density of each item's data and each class."""
    first_probas: Callable[..., Any]
    """(data, *, n_items, n_classes) -> class probabilities from which a chain starts."""
    warmup: int = 200
    """Sweeps to discard: enough for chains that start from the votes to forget them."""
