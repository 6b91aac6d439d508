"""What Gibbs sampling needs to know about a model.

Each other module of this folder bears the name of a model of this package, or is shared by several,
and offers its `CONDITIONALS`; `bayescrowd.posterior.gibbs` finds them there by the model's name.

A model of yours brings its own. Give `sample_posterior` a module, or any object that can be hashed,
with the names that `bayescrowd.models.one_coin` has: `Prior` and `Params`, two named tuples;
`model`, `label_log_joint`, `simulate` and `simulate_labels`, with the same arguments; and `FACTS`,
whose `subject` is 'labels'. It is sampled by NUTS. With a `CONDITIONALS` as well, an instance of
`Conditionals`, it is sampled by Gibbs; then `has_conditionals` of its facts is not looked at. What
the functions must agree on: `log_joint` is `label_log_joint`, and `draw_params` leaves the
parameters' distribution given the classes and the data as it is. Known classes are in
`Labels.gold`; `keep_gold` of `bayescrowd.models.dawid_skene` puts them into a log joint density.

Our one-coin model under another name:

    >>> import bayescrowd as bc
    >>> from bayescrowd.models import one_coin
    >>> from bayescrowd.posterior.conditionals import one_coin as conjugate
    >>> class Experts:
    ...     Params, Prior, FACTS = one_coin.Params, one_coin.Prior, one_coin.FACTS
    ...     model, label_log_joint = one_coin.model, one_coin.label_log_joint
    ...     simulate, simulate_labels = one_coin.simulate, one_coin.simulate_labels
    ...     CONDITIONALS = conjugate.CONDITIONALS
    >>> labels = bc.simulate.crowd(30, 5, accuracy=0.9, seed=0).annotations
    >>> prior = Experts.Prior(accuracy=0.9)
    >>> post = bc.sample_posterior(Experts, labels, prior=prior, chains=2, draws=50, warmup=10)
    >>> post.attrs["method"]
    'gibbs'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Collapsed", "Conditionals", "Naming"]


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


class Naming(NamedTuple):
    """How classes bear other names, see `bayescrowd.posterior.conditionals.names`."""

    log_prior: Callable[..., Any]
    """(params, prior) -> log prior density of the parameters of each class if it bore each name, up
    to what names do not change, indexed [cls, name]."""
    rename: Callable[..., Any]
    """(params, naming) -> `Params` in which name n belongs to what was class naming[n]."""


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
    work: float = 1.0
    """Time of a sweep relative to that of `dawid_skene` with as many labels and parameters; by
    default, sampling gives up the sooner the larger it is."""
    naming: Naming | None = None
    """For models of labels whose prior may hardly tell the names of classes apart: how classes are
    renamed. Draws of such a model bear the names that the labels suggest."""
