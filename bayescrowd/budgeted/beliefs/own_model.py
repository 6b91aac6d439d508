"""A user's own NumPyro model behind a policy: what the model states decides what is bought.

The model sees what was bought as `bayescrowd.models.naive_bayes` or `bayescrowd.models.access_path`
would, with features, classes and values numbered as in the user's space. Nothing about it is known:
features need not be independent given the class, so every answer moves chains of the whole model
(`warm_nuts`), and a draw is a draw of all features at once.

A classifier reads the labels of one feature through the mean channel. Where an outcome is a
multiset of W labels, fewer labels are read as a part of one: P(part | class) is the sum over
multisets of P(multiset | class) times the share of its parts that are this one. Of more labels, the
first W are read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from copy import copy
from itertools import count
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int
from numpyro import handlers
from numpyro.infer.util import potential_energy
from scipy.special import comb, gammaln

from bayescrowd.budgeted.beliefs.credibility import Credibility, Measure
from bayescrowd.budgeted.beliefs.drawn_tables import (
    DrawnTables,
    credibility_of_batches,
    draws_of_channels,
    read_tables,
    refuse_mode,
)
from bayescrowd.budgeted.beliefs.feature_readings import (
    Reading,
    noisy_observations,
    observations,
)
from bayescrowd.budgeted.beliefs.label_multisets import Multisets, multisets
from bayescrowd.budgeted.beliefs.majorities import first_majority
from bayescrowd.budgeted.beliefs.model_sampler import ModelSampler
from bayescrowd.budgeted.beliefs.naive_bayes import ChannelReader, PointEstimate, Reader
from bayescrowd.budgeted.beliefs.warm_nuts import (
    FEWEST_SLOTS,
    N_CHAINS,
    N_KEPT,
    SLOT_GROWTH,
    Target,
    advance,
    draw_from_prior,
    further_seed,
    n_slots,
    needs_adapting,
)
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.data.vocabulary import comma_list
from bayescrowd.posterior.chains import FeatureSizes, ReadingSizes

__all__ = ["MultisetChannelReader", "OwnModelBelief"]

ROUNDING = 1e-3
"""By how much the probabilities of a channel's row may miss one, in single precision."""


class MultisetChannelReader(NamedTuple):
    """Reads labels through a channel P(multiset of W labels | class)."""

    channel: Float[np.ndarray, "cls outcome"]
    """P(multiset | class)."""
    outcomes: Multisets
    """The multisets."""

    def log_likelihood(self, labels: Int[np.ndarray, "row label"]) -> Float[np.ndarray, "row cls"]:
        """Log P(labels | class) of the first W labels, in their order; 0 where a row has none."""
        whole = self.outcomes.counts
        n_read, n_values = int(whole[0].sum()), whole.shape[1]
        is_read = (labels >= 0) & ((labels >= 0).cumsum(axis=1) <= n_read)
        named = (labels[:, :, None] == np.arange(n_values)) & is_read[:, :, None]
        counts, inverse = np.unique(named.sum(axis=1), axis=0, return_inverse=True)
        parts = comb(whole, counts[:, None, :]).prod(axis=2)
        n = counts.sum(axis=1)
        log_orders = gammaln(n + 1) - gammaln(counts + 1).sum(axis=1)
        probability = parts @ self.channel.T / comb(n_read, n)[:, None]
        with np.errstate(divide="ignore"):  # labels that the channel rules out
            found = np.log(probability) - log_orders[:, None]
        return found[inverse.reshape(-1)]


class OwnModelBelief:
    """Posterior of a user's own model, by NUTS chains kept warm.

    Args:
        space: the features, in the user's order.
        labels_per_query: number of labels of an observation (W).
        sampler: the model, and how its draws are read.
        is_noisy: whether it sees all labels, as the access path model does, or the value that most
            of them name.

    Raises:
        ValueError: the model or its channels are not as `ModelSampler` asks for.
    """

    def __init__(
        self, space: FeatureSpace, labels_per_query: int, sampler: ModelSampler, *, is_noisy: bool
    ) -> None:
        self._n_classes, self._n_values = space.n_classes, space.n_values
        self._labels_per_query, self._is_noisy = labels_per_query, is_noisy
        self._outcomes = [multisets(v, labels_per_query) for v in space.n_values]
        self.n_outcomes = space.n_values
        if is_noisy:
            self.n_outcomes = tuple(len(found.counts) for found in self._outcomes)
        self._sampler = sampler
        self._target = Target(sampler.model, sampler.channels or read_tables)
        self._readings: tuple[Reading, ...] = ()
        data, sizes = self._posed(FEWEST_SLOTS)
        _check_call(sampler.model, data, sizes)
        found = draw_from_prior(0, data, {}, target=self._target, sizes=sizes)
        self._take(found)
        self._check_padding()

    def observe(
        self, feature: int, cls: int, labels: tuple[int, ...], workers: tuple[int, ...] = ()
    ) -> OwnModelBelief:
        """The belief with a reading added and all chains moved on."""
        return self._with_readings([Reading(feature, cls, self._read(feature, labels))])

    def observe_all(
        self, target: Int[np.ndarray, " row"], labels: Int[np.ndarray, "row feature label"]
    ) -> OwnModelBelief:
        """The belief with a whole table added and all chains moved on."""
        new = [
            Reading(f, cls, self._read(f, tuple(said[said >= 0].tolist())))
            for cls, row in zip(target.tolist(), labels, strict=True)
            for f, said in enumerate(row)
            if (said >= 0).any()
        ]
        return self._with_readings(new)

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, "feature cls outcome"]:
        """Channels of one draw."""
        return self._channels[rng.integers(N_KEPT)]

    def mean(self) -> Float[np.ndarray, "feature cls outcome"]:
        """Mean of the channels over the draws."""
        return self._mean

    def credibility(
        self,
        feature: int,
        prior: Float[np.ndarray, " cls"],
        *,
        epsilon: float,
        measure: Measure,
        required: tuple[float, float] | None = None,
    ) -> Credibility:
        """How well the feature's channel is known, from the draws and as many more as it takes."""
        width = self.n_outcomes[feature]
        return credibility_of_batches(
            (DrawnTables(drawn[:, feature, :, :width], None) for drawn in self._batches()),
            N_CHAINS,
            prior,
            epsilon=epsilon,
            measure=measure,
            required=required,
        )

    def reader(
        self, feature: int, slots: Int[np.ndarray, " value"], estimate: PointEstimate
    ) -> Reader:
        """A reader of labels through the mean channel."""
        refuse_mode(estimate)
        channel = self._mean[feature, :, : self.n_outcomes[feature]]
        if self._is_noisy:
            return MultisetChannelReader(channel, self._outcomes[feature])
        return ChannelReader(channel, first_majority)

    def _with_readings(self, new: list[Reading]) -> OwnModelBelief:
        changed = copy(self)
        changed._readings = (*self._readings, *new)
        n = len(changed._readings)
        data, sizes = changed._posed(n_slots(n))
        adapts = needs_adapting(n) or len(new) > 1
        changed._take(advance(n, self._chains, data, {}, adapts, target=self._target, sizes=sizes))
        return changed

    def _batches(self) -> Iterator[Float[np.ndarray, "draw feature cls outcome"]]:
        """The channels of the draws, and of further draws of the same chains."""
        yield self._channels
        n, chains = len(self._readings), self._chains
        data, sizes = self._posed(n_slots(n))
        for batch in count(1):
            seed = further_seed(n, batch)
            if n == 0:
                found = draw_from_prior(seed, data, {}, target=self._target, sizes=sizes)
            else:
                found = advance(seed, chains, data, {}, False, target=self._target, sizes=sizes)
            chains = jax.tree.map(np.asarray, found[0])
            yield self._checked(found[1])

    def _take(self, found: Any) -> None:
        """Keep the chains and the channels of their draws, which are checked."""
        self._chains = jax.tree.map(np.asarray, found[0])
        self._channels = self._checked(found[1])
        self._mean = self._channels.mean(axis=0)

    def _read(self, feature: int, labels: tuple[int, ...]) -> tuple[int, ...]:
        """The labels that the model sees."""
        if self._is_noisy or len(labels) == 1:
            return labels
        return (int(first_majority(np.array([labels]), self._n_values[feature])[0].argmax()),)

    def _posed(self, slots: int) -> tuple[Any, Any]:
        """The padded observations and their sizes."""
        if self._is_noisy:
            data = noisy_observations(self._readings, slots, self._labels_per_query)
            return data, ReadingSizes(slots, 1, self._n_classes, self._n_values)
        sizes = FeatureSizes(slots, self._n_classes, self._n_values)
        return observations(self._readings, slots), sizes

    def _checked(self, kept: Any) -> Float[np.ndarray, "draw feature cls outcome"]:
        """The channels of the draws, if they are channels."""
        source = "channels"
        if self._sampler.channels is None:
            source = "conditional and confusion" if self._is_noisy else "conditional"
            kept = self._default_channels(kept)
        found = np.asarray(kept, dtype=float)
        n_features, widest = len(self.n_outcomes), max(self.n_outcomes)
        expected = (n_features, self._n_classes, widest)
        if found.shape[1:] != expected:
            raise ValueError(
                f"{source}: expected channels of shape {expected}, one number for each feature, "
                f"class and outcome; got {found.shape[1:]}"
            )
        has_outcome = np.arange(widest) < np.array(self.n_outcomes)[:, None, None]
        inside = np.where(has_outcome, found, 0.0)
        misses = np.abs(inside.sum(axis=-1) - 1) + np.abs(found - inside).sum(axis=-1)
        is_wrong = ~(misses <= ROUNDING) | ~(found >= -ROUNDING).all(axis=-1)
        if is_wrong.any():
            draw, f, y = np.argwhere(is_wrong)[0]
            raise ValueError(
                f"{source}: P(outcome | class) of feature {f} and class {y} is "
                f"{found[draw, f, y].round(4).tolist()}; expected {self.n_outcomes[f]} "
                "probabilities that sum to 1, and zeros after them"
            )
        inside = np.maximum(inside, 0)
        return inside / inside.sum(axis=-1, keepdims=True)

    def _default_channels(self, kept: dict[str, Array]) -> Float[np.ndarray, "draw ..."]:
        """Channels from the tables among the sites."""
        needed = ("conditional", "confusion") if self._is_noisy else ("conditional",)
        lacking = [name for name in needed if name not in kept]
        if lacking:
            raise ValueError(
                f"the model has no site {comma_list(lacking)}; expected it, or a function "
                "`channels` that turns a draw into P(outcome | class)"
            )
        conditional = np.asarray(kept["conditional"], dtype=float)
        if not self._is_noisy:
            return conditional
        confusion = np.asarray(kept["confusion"], dtype=float)
        confusion = confusion.mean(axis=2) if confusion.ndim == 5 else confusion
        tables = []
        for f, (v, outcomes) in enumerate(zip(self._n_values, self._outcomes, strict=True)):
            of_feature = draws_of_channels(
                conditional[:, f, :, :v], confusion[:, f, :v, :v], outcomes
            )
            rest = max(self.n_outcomes) - of_feature.shape[2]
            tables.append(np.pad(of_feature, [(0, 0), (0, 0), (0, rest)]))
        return np.stack(tables, axis=1)

    def _check_padding(self) -> None:
        """Raise a ValueError if what fills the observations changes the density."""
        rises = []
        for slots in (FEWEST_SLOTS, FEWEST_SLOTS * SLOT_GROWTH):
            data, sizes = self._posed(slots)
            energies = [
                potential_energy(
                    self._sampler.model,
                    (data,),
                    sizes._asdict(),
                    jax.tree.map(lambda leaf, place=place: leaf[place], self._chains.position),
                )
                for place in (0, 1)
            ]
            rises.append(float(energies[0] - energies[1]))
        few, many = rises
        if not np.isclose(few, many, rtol=1e-3, atol=1e-2):
            raise ValueError(
                "the model counts the padding of its observations: readings whose `item` is "
                "`n_items`, and items of class -1, must not change the density; "
                "`jax.ops.segment_sum` over items drops such readings"
            )


def _check_call(model: Callable[..., Any], data: Any, sizes: Any) -> None:
    """Raise a ValueError unless the model takes these arguments and has only real parameters."""
    try:
        inspect.signature(model).bind(data, **sizes._asdict())
    except TypeError as error:
        raise ValueError(
            f"model {getattr(model, '__name__', model)!r}: {error}; it is called with the "
            f"observations and the keywords {comma_list(sizes._fields)}"
        ) from None
    trace = handlers.trace(handlers.seed(model, 0)).get_trace(data, **sizes._asdict())
    latent = [s for s in trace.values() if s["type"] == "sample" and not s["is_observed"]]
    discrete = [site["name"] for site in latent if site["fn"].support.is_discrete]
    if discrete:
        raise ValueError(
            f"the model draws {comma_list(discrete)}, which is discrete; NUTS needs it summed out"
        )
    if not latent:
        raise ValueError("the model has no site to draw; expected `numpyro.sample` of a parameter")
