"""What Gibbs sampling needs to know about a model.

Each module of this folder bears the name of a model and offers its `CONDITIONALS`;
`bayescrowd.posterior.gibbs` finds them there by the model's name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Collapsed", "Conditionals"]


class Collapsed(NamedTuple):
    """A model's density with most parameters integrated out, for jumps between modes.

    A point of the collapsed space has the classes and `rest`, whatever else the density depends on.
    Jumps propose classes that are independent of each other and a rest from a fitted proposal.
    """

    log_density: Callable[..., Any]
    """(truth, rest, labels, prior, *, n_workers, n_classes) -> log density of a point and the
    labels."""
    fit: Callable[..., Any]
    """(draws of the parameters by name, one after the other) -> proposal of a rest."""
    propose: Callable[..., Any]
    """(rng_key, truth, proposal, labels) -> rest."""
    log_proposal: Callable[..., Any]
    """(rest, truth, proposal, labels) -> log density with which `propose` proposes a rest."""
    rest_of: Callable[..., Any]
    """(rng_key, truth, params, labels) -> rest of a draw, itself drawn if draws lack it."""
    params_of: Callable[..., Any]
    """(rng_key, rest, truth, params, labels, prior) -> parameters from which a sweep goes on."""


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
    collapsed: Collapsed | None = None
    """The density with most parameters integrated out, if it is known."""
    warmup: int = 200
    """Sweeps to discard: enough for chains that start from the votes to forget them."""
