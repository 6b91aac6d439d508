"""Gibbs sampling of crowd models whose parameters are conjugate given the true classes.

A sweep alternates the two conditionals of the model with its discrete classes left in:

    parameters | classes, labels:  Dirichlet rows with concentrations prior + counts
    class of an item | parameters, labels:  Dawid and Skene 1979, eq. 2.5

A state holds the classes, the parameters that were drawn given the classes before, and the log
joint density of each item's labels and class under those parameters, from which the classes were
drawn. Only the classes enter the next sweep, so that a chain goes on, warm, when labels of known
items have arrived in between.

`sweep` is the pure function of one step; `Gibbs` makes it a kernel that `numpyro.infer.MCMC` can
drive. Chains run one after another inside one compiled program: scatter-adds of several chains at
once are what XLA is slow at on CPUs (1,000,000 labels, four chains: 28 ms against 130 ms).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import softmax
from jaxtyping import Array, Float, Int, PRNGKeyArray
from numpyro.infer.mcmc import MCMCKernel

from bayescrowd.models import dawid_skene
from bayescrowd.models.dawid_skene import Labels, confusion_concentration
from bayescrowd.posterior.dirichlet import log_dirichlet

__all__ = ["CONJUGATE", "Gibbs", "KernelState", "State", "conjugate_models", "start", "sweep"]

_LOG_LEAST = -80.0
"""Floor of log probabilities, above the least normal number of single precision (-87)."""


class State(NamedTuple):
    """One draw of a chain; the next sweep reads the classes only."""

    truth: Int[Array, " item"]
    """True class of each item."""
    params: Any
    """`Params` of the model, drawn given the classes of the state before."""
    log_joint: Float[Array, "item cls"]
    """Log density of each item's labels and each class under `params`."""


class KernelState(NamedTuple):
    """What `numpyro.infer.MCMC` carries from draw to draw."""

    i: Int[Array, "*chain"]
    """Number of sweeps so far."""
    draw: State
    """The draw itself."""
    z: dict[str, Array]
    """The draw's parameters by site name, the field that MCMC collects."""
    rng_key: Any
    """The source of randomness of the sweeps to come."""


class Conjugate(NamedTuple):
    """What Gibbs sampling needs to know of a model."""

    draw_params: Any
    """(rng_key, counts, class_counts, prior) -> Params, given counts[worker, cls, observed]."""
    log_confusion: Any
    """Params -> log P(observed | cls), indexed [worker, cls, observed]."""


def sweep(
    rng_key: PRNGKeyArray,
    state: State,
    labels: Labels,
    prior: Any,
    *,
    model: ModuleType = dawid_skene,
    n_workers: int,
) -> State:
    """Draw parameters given the classes, then classes given the parameters.

    Pure, and compiles under `jax.jit` with `model` and `n_workers` fixed.

    Args:
        rng_key: the source of randomness.
        state: where the chain stands.
        labels: the observed labels, sorted by item.
        prior: the model's `Prior`.
        model: a module of `conjugate_models`.
        n_workers: number of workers, those without a label among them.
    """
    key_params, key_truth = jax.random.split(rng_key)
    n_classes = state.log_joint.shape[-1]
    conjugate = CONJUGATE[model.__name__]
    counts = _counts(state.truth, labels, n_workers, n_classes)
    class_counts = jnp.zeros(n_classes).at[state.truth].add(1.0)
    params = conjugate.draw_params(key_params, counts, class_counts, prior)
    log_joint = _log_joint(
        conjugate.log_confusion(params), params.prevalence, labels, len(state.truth)
    )
    return State(truth=_categorical(key_truth, log_joint), params=params, log_joint=log_joint)


def start(
    rng_key: PRNGKeyArray,
    probas: Float[Array, "item cls"],
    labels: Labels,
    prior: Any,
    *,
    model: ModuleType = dawid_skene,
    n_workers: int,
) -> State:
    """Draw classes from given probabilities, and make the first sweep from there.

    Arguments as in `sweep`; `probas` are the probabilities of each item's class.
    """
    key_truth, key_sweep = jax.random.split(rng_key)
    log_probas = jnp.log(jnp.maximum(probas, jnp.exp(_LOG_LEAST)))
    first = State(truth=_categorical(key_truth, log_probas), params=None, log_joint=log_probas)
    return sweep(key_sweep, first, labels, prior, model=model, n_workers=n_workers)


class Gibbs(MCMCKernel):
    """Gibbs sampling as a kernel of `numpyro.infer.MCMC`.

    Run it with the arguments of the model's own `model`. Chains are started at draws of the vote
    shares, or at draws of `init_params`, the probabilities [item, cls] of each item's class, with
    a leading axis of chains if there are several.

    Args:
        model: a module of `conjugate_models`.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from numpyro.infer import MCMC
        >>> from bayescrowd.models import dawid_skene
        >>> labels = dawid_skene.Labels(*jnp.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1]]))
        >>> mcmc = MCMC(Gibbs(dawid_skene), num_warmup=5, num_samples=10, progress_bar=False)
        >>> mcmc.run(jax.random.key(0), labels, n_items=2, n_workers=2, n_classes=2)
        >>> mcmc.get_samples()["confusion"].shape
        (10, 2, 2, 2)
    """

    def __init__(self, model: ModuleType) -> None:
        if model.__name__ not in CONJUGATE:
            known = ", ".join(name.rpartition(".")[2] for name in CONJUGATE)
            raise ValueError(
                f"{model.__name__} has no Gibbs sampler; models that do: {known}. "
                "Use method='nuts'"
            )
        self.model = model

    @property
    def sample_field(self) -> str:
        """The field of `KernelState` that is collected."""
        return "z"

    def init(
        self,
        rng_key: Any,
        num_warmup: int,
        init_params: Float[Array, "*chain item cls"] | None,
        model_args: tuple[Labels],
        model_kwargs: dict[str, Any],
    ) -> KernelState:
        """First state of one chain, or of several if `rng_key` is an array of keys."""
        (labels,) = model_args
        sizes = dict(model_kwargs)
        _check_sorted(labels)
        if init_params is None:
            init_params = vote_shares(
                labels, n_items=sizes["n_items"], n_classes=sizes["n_classes"]
            )
        prior = sizes.get("prior", self.model.Prior())

        def init_one(key: Any, probas: Float[Array, "item cls"]) -> KernelState:
            key_start, key_rest = jax.random.split(key)
            draw = start(
                key_start, probas, labels, prior, model=self.model, n_workers=sizes["n_workers"]
            )
            return KernelState(jnp.zeros((), int), draw, draw.params._asdict(), key_rest)

        if _is_single(rng_key):
            return init_one(rng_key, init_params)
        probas = jnp.broadcast_to(init_params, (len(rng_key), *init_params.shape[-2:]))
        return jax.lax.map(lambda chain: init_one(*chain), (rng_key, probas))

    def sample(
        self, state: KernelState, model_args: tuple[Labels], model_kwargs: dict[str, Any]
    ) -> KernelState:
        """One sweep of one chain or of several."""
        (labels,) = model_args
        prior = model_kwargs.get("prior", self.model.Prior())

        def sample_one(state: KernelState) -> KernelState:
            key_rest, key_sweep = jax.random.split(state.rng_key)
            draw = sweep(
                key_sweep,
                state.draw,
                labels,
                prior,
                model=self.model,
                n_workers=model_kwargs["n_workers"],
            )
            return KernelState(state.i + 1, draw, draw.params._asdict(), key_rest)

        return sample_one(state) if state.i.ndim == 0 else jax.lax.map(sample_one, state)


def vote_shares(labels: Labels, *, n_items: int, n_classes: int) -> Float[Array, "item cls"]:
    """Share of each class among an item's labels and one vote spread over all classes."""
    votes = jnp.full((n_items, n_classes), 1 / n_classes).at[labels.item, labels.label].add(1.0)
    return votes / votes.sum(axis=1, keepdims=True)


def conjugate_models() -> list[str]:
    """Names of the models that have a Gibbs sampler."""
    return [name.rpartition(".")[2] for name in CONJUGATE]


def _counts(
    truth: Int[Array, " item"], labels: Labels, n_workers: int, n_classes: int
) -> Float[Array, "worker cls observed"]:
    """How often each worker gave each label to items of each class."""
    counts = jnp.zeros((n_workers, n_classes, n_classes))
    return counts.at[labels.worker, truth[labels.item], labels.label].add(1.0)


def _log_joint(
    log_confusion: Float[Array, "worker cls observed"],
    prevalence: Float[Array, " cls"],
    labels: Labels,
    n_items: int,
) -> Float[Array, "item cls"]:
    """The model's `label_log_joint`, three times as fast for labels sorted by item."""
    n_workers, n_classes, n_observed = log_confusion.shape
    table = log_confusion.transpose(0, 2, 1).reshape(n_workers * n_observed, n_classes)
    log_answers = jax.ops.segment_sum(
        table[labels.worker * n_observed + labels.label],
        labels.item,
        num_segments=n_items,
        indices_are_sorted=True,
    )
    return jnp.log(prevalence) + log_answers


def _categorical(
    rng_key: PRNGKeyArray, log_weights: Float[Array, "item cls"]
) -> Int[Array, " item"]:
    """One class per row by inversion: one uniform per row instead of one per entry."""
    cumulative = jnp.cumsum(softmax(log_weights, axis=-1), axis=-1)
    u = jax.random.uniform(rng_key, log_weights.shape[:1]) * cumulative[:, -1]
    # The total is left out of the comparison, so that rounding cannot name a class too many.
    return (u[:, None] >= cumulative[:, :-1]).sum(axis=-1)


def _draw_dawid_skene(
    rng_key: PRNGKeyArray,
    counts: Float[Array, "worker cls observed"],
    class_counts: Float[Array, " cls"],
    prior: dawid_skene.Prior,
) -> dawid_skene.Params:
    n_classes = len(class_counts)
    # All rows in one draw: a second one would cost as much compilation again.
    concentration = jnp.concatenate(
        [
            (class_counts + prior.prevalence)[None],
            (counts + confusion_concentration(prior, n_classes)).reshape(-1, n_classes),
        ]
    )
    rows = jnp.exp(jnp.maximum(log_dirichlet(rng_key, concentration), _LOG_LEAST))
    return dawid_skene.Params(prevalence=rows[0], confusion=rows[1:].reshape(counts.shape))


def _check_sorted(labels: Labels) -> None:
    if isinstance(labels.item, jax.core.Tracer):
        return
    if (np.diff(np.asarray(labels.item)) < 0).any():
        raise ValueError("labels are not sorted by item, which Gibbs sampling relies on")


def _is_single(rng_key: Any) -> bool:
    typed = jnp.issubdtype(rng_key.dtype, jax.dtypes.prng_key)
    return rng_key.ndim == (0 if typed else 1)


CONJUGATE = {
    dawid_skene.__name__: Conjugate(
        draw_params=_draw_dawid_skene,
        log_confusion=lambda params: jnp.log(params.confusion),
    ),
}
"""Models with a Gibbs sampler, by the name of their module."""
