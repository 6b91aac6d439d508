"""Tables of one feature known by draws from their posterior: channels, readings, credibility.

A draw has P(value | class) and, for the access path model, P(label | value). Only what does not
change when the hidden values of a draw are renamed is averaged over draws: the probability of
labels given the class. For the credibility, which speaks of the tables themselves, the hidden
values of each draw are first named after the labels that they most often lead to.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float, Int
from scipy.optimize import linear_sum_assignment

from bayescrowd.budgeted.beliefs.credibility import (
    Credibility,
    Estimate,
    Measure,
    draws_credibility,
    is_clear,
)
from bayescrowd.budgeted.beliefs.label_multisets import Multisets

__all__ = [
    "DrawnTables",
    "credibility_of_batches",
    "draws_of_channels",
    "evened",
    "padded",
    "read_tables",
    "refuse_mode",
]

LEAST = 1e-30
"""Added to probabilities before their logarithm is taken."""

MOST_BATCHES = 64
"""Most batches of draws for a credibility. Of independent draws 4,096 have a standard error of
.008 at most; NUTS has some more of them in 64 batches of 256."""


class DrawnTables(NamedTuple):
    """Draws of one feature's tables."""

    conditional: Float[np.ndarray, "draw cls value"]
    """P(value | class)."""
    confusion: Float[np.ndarray, "draw value label"] | None
    """P(label | value); None where values are read without noise."""

    def log_likelihood(self, counts: Int[np.ndarray, "row label"]) -> Float[np.ndarray, "row cls"]:
        """Log P(labels | class) in their order, averaged over draws.

        Args:
            counts: how many of a row's labels name each value.
        """
        assert self.confusion is not None
        log_given = np.log(self.confusion + LEAST) @ counts.T
        highest = log_given.max(axis=(0, 1))
        given = np.exp(log_given - highest)
        return (np.log((self.conditional @ given).mean(axis=0) + LEAST) + highest).T

    def channels(self, outcomes: Multisets | None) -> Float[np.ndarray, "draw cls outcome"]:
        """P(outcome | class) of each draw.

        Args:
            outcomes: the multisets of labels that are the outcomes; None if values are.
        """
        if self.confusion is None:
            return self.conditional
        assert outcomes is not None
        return draws_of_channels(self.conditional, self.confusion, outcomes)

    def credibility(
        self, prior: Float[np.ndarray, " cls"], *, epsilon: float, measure: Measure
    ) -> tuple[Estimate, Estimate]:
        """How well P(value | class) and P(label | value) are known, from the draws."""
        known = partial(draws_credibility, epsilon=epsilon, measure=measure)
        if self.confusion is None:
            return known(self.conditional, prior), Estimate(1.0, 0.0)
        conditional, confusion = self._named(prior)
        n_values = confusion.shape[1]
        return known(conditional, prior), known(confusion, np.full(n_values, 1 / n_values))

    def _named(
        self, prior: Float[np.ndarray, " cls"]
    ) -> tuple[Float[np.ndarray, "draw cls value"], Float[np.ndarray, "draw value label"]]:
        """The tables with the hidden values of each draw named after the labels they lead to."""
        assert self.confusion is not None
        joint = (prior @ self.conditional)[:, :, None] * self.confusion
        order = np.stack([linear_sum_assignment(-one.T)[1] for one in joint])
        return (
            np.take_along_axis(self.conditional, order[:, None, :], axis=2),
            np.take_along_axis(self.confusion, order[:, :, None], axis=1),
        )


def credibility_of_batches(
    batches: Iterator[DrawnTables],
    n_chains: int,
    prior: Float[np.ndarray, " cls"],
    *,
    epsilon: float,
    measure: Measure,
    required: tuple[float, float] | None,
) -> Credibility:
    """How well the tables are known, from as many batches of draws as that takes.

    With few draws the estimate is above what is required by chance every now and then, and a policy
    that compares after every answer would stop at the first such time.

    Args:
        batches: draws of chains, one chain after the other, and further draws of the same chains.
        n_chains: number of chains.
        prior: probability of each class.
        epsilon: half-width of the interval around the mean, for 'interval'.
        measure: measure of concentration; see the module `credibility`.
        required: credibilities of the two tables, if only the comparison with them matters.
    """
    kept: list[DrawnTables] = []
    while True:
        # their number doubles, so that what was computed of fewer costs no more than the last
        kept += islice(batches, max(len(kept), 1))
        tables = _joined(kept, n_chains)
        found = tables.credibility(prior, epsilon=epsilon, measure=measure)
        known, errors = np.array(found).T
        if is_clear(known, errors, required) or len(kept) >= MOST_BATCHES:
            return Credibility(float(known[0]), float(known[1]), min(found).error)


def _joined(batches: list[DrawnTables], n_chains: int) -> DrawnTables:
    """Draws of several batches, those of each chain one after the other."""

    def join(parts: tuple[Float[np.ndarray, "draw ..."], ...]) -> Float[np.ndarray, "all ..."]:
        by_chain = [part.reshape(n_chains, -1, *part.shape[1:]) for part in parts]
        return np.concatenate(by_chain, axis=1).reshape(-1, *parts[0].shape[1:])

    conditional = join(tuple(batch.conditional for batch in batches))
    given_value = tuple(b.confusion for b in batches if b.confusion is not None)
    return DrawnTables(conditional, join(given_value) if given_value else None)


def draws_of_channels(
    conditional: Float[np.ndarray, "draw cls value"],
    confusion: Float[np.ndarray, "draw value label"],
    outcomes: Multisets,
) -> Float[np.ndarray, "draw cls outcome"]:
    """P(multiset of labels | class), hidden values summed out.

    Examples:
        >>> import numpy as np
        >>> from bayescrowd.budgeted.beliefs.label_multisets import multisets
        >>> conditional, confusion = np.eye(2)[None], np.array([[[0.9, 0.1], [0.2, 0.8]]])
        >>> draws_of_channels(conditional, confusion, multisets(2, 2))[0].round(2)
        array([[0.81, 0.18, 0.01],
               [0.04, 0.32, 0.64]])
    """
    log_given = np.log(confusion + LEAST) @ outcomes.counts.T + outcomes.log_orders
    return conditional @ np.exp(log_given)


def evened(channel: Float[np.ndarray, "cls value"], n_seen: int) -> Float[np.ndarray, "cls value"]:
    """A mean channel whose values beyond the first `n_seen` share their probability evenly.

    Values that no answer has shown are exchangeable; draws are not quite.
    """
    channel = channel.copy()
    if n_seen < channel.shape[1]:
        channel[:, n_seen:] = channel[:, n_seen:].mean(axis=1, keepdims=True)
    return channel


def read_tables(sites: dict[str, Array]) -> dict[str, Array]:
    """The tables among the sites of a draw."""
    return {name: sites[name] for name in ("conditional", "confusion") if name in sites}


def padded(
    channels: list[Float[np.ndarray, "cls _outcome"]],
) -> Float[np.ndarray, "feature cls outcome"]:
    """Channels of features in one table, with zeros beyond a feature's last outcome."""
    widest = max(channel.shape[1] for channel in channels)
    table = np.zeros((len(channels), channels[0].shape[0], widest))
    for into, channel in zip(table, channels, strict=True):
        into[:, : channel.shape[1]] = channel
    return table


def refuse_mode(estimate: str) -> None:
    """Raise a ValueError if the mode is asked for, which draws do not give."""
    if estimate == "map":
        raise ValueError(
            "estimate='map': draws by NUTS give the posterior's mean; expected 'mean', or a policy "
            "with sampler='conjugate'"
        )
