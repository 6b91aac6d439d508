"""Stochastic variational inference: normal guides fitted on mini-batches of tasks, for large sets.

M. D. Hoffman, D. M. Blei, C. Wang and J. Paisley (2013), "Stochastic variational inference", JMLR
14, with the gradients of A. Kucukelbir, D. Tran, R. Ranganath, A. Gelman and D. M. Blei (2017),
"Automatic differentiation variational inference", JMLR 18. A guide is a product of independent
normals over a model's unconstrained parameters, the family of NumPyro's `AutoNormal`, and is fitted
by raising the evidence lower bound

    ELBO = E[log p(parameters)] + E[sum over tasks of log p(labels of the task | parameters)] + H,

H being the guide's entropy. True classes are summed out, as everywhere. Tasks are dealt into K
batches of nearly equal size once, at random; a step looks at one batch and counts it K times, which
leaves the ELBO and its gradient unbiased whatever the batches' sizes. Steps go round the batches,
so that any K of them see every task once. Workers' parameters belong to all batches. Parameters of
tasks, as in `item_difficulty`, have normals of their own, of which a step sees its batch's.

Why independent normals: given the classes, the workers' parameters are independent, so little is
lost where classes are nearly certain, and the guide takes no more memory than the parameters. What
is lost are correlations, and the skew of posteriors of workers with few labels: intervals tend to
be too narrow.

All normals start at the prior means, where workers are right more often than wrong and classes keep
their names (see `bayescrowd.posterior.nuts`). Several chains are several fits with different random
numbers: where they differ, the optimisation has not converged. Each draw carries its log
importance weight ``log p(parameters, labels) - log q(parameters)``: the Pareto k of the weights
shows how far the guide is from the posterior (Y. Yao, A. Vehtari, D. Simpson and A. Gelman 2018,
"Yes, but did it work?", ICML).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray
from numpyro import handlers, optim
from numpyro.distributions import biject_to
from numpyro.infer.mcmc import MCMCKernel
from numpyro.infer.util import constrain_fn, potential_energy
from numpyro.primitives import Messenger
from tqdm.auto import tqdm

from bayescrowd.models.dawid_skene import Labels
from bayescrowd.posterior.chains import Draw, Sizes
from bayescrowd.posterior.container import dataset_of

__all__ = [
    "Batches",
    "Guide",
    "KernelState",
    "Variational",
    "batch_elbo",
    "deal",
    "optimisation",
    "read_draw",
]

TRACE_POINTS = 100
"""Number of points of the ELBO's trace, each the mean of equally many steps."""

FIRST_STEP, LAST_STEP = 0.05, 0.001
"""Adam's step sizes at the start and at the end, falling by the same factor each step."""

FIRST_SCALE = 0.1
"""Standard deviation that the normals start from, `AutoNormal`'s default."""


class Guide(NamedTuple):
    """Independent normals over the unconstrained parameters, by site."""

    loc: dict[str, Array]
    """Means."""
    log_scale: dict[str, Array]
    """Logarithms of the standard deviations."""


class Batches(NamedTuple):
    """Labels of disjoint sets of items, padded to one shape."""

    item: Int[Array, "batch item"]
    """Indices of the batch's items; `n_items` where there is none."""
    labels: Labels
    """Labels [batch, label] whose `item` is the place in the batch, past its end where padded; the
    known classes, if there are any, are [batch, item]."""


class KernelState(NamedTuple):
    """Fitted guides and the draws made of them last; each field leads with the chain."""

    z: dict[str, Array]
    """Unconstrained parameters, the field that NumPyro's MCMC collects."""
    guide: Guide
    """The guides that the draws come from."""
    elbo: Float[Array, "chain point"]
    """Trace of the ELBO while the guide was fitted, in nats."""
    rng_key: Any
    """The source of randomness for the remaining draws."""


@dataclass(frozen=True)
class Variational(MCMCKernel):
    """Independent draws from fitted guides, as a kernel of several chains.

    `init` fits a guide for each chain, for `num_warmup` steps.

    Args:
        model: a module of `bayescrowd.models` that reads crowd labels.
        batch_size: number of items per step; all items if there are fewer.
        progress: whether to show a progress bar, where there is a terminal.
    """

    model: ModuleType
    batch_size: int = 4096
    progress: bool = field(default=False, compare=False)

    @property
    def sample_field(self) -> str:
        """The field of `KernelState` that is collected."""
        return "z"

    def init(
        self,
        rng_key: Any,
        num_warmup: int,
        init_params: None,
        model_args: tuple[Labels],
        model_kwargs: dict[str, Any],
    ) -> KernelState:
        """Fit one guide per key."""
        (labels,) = model_args
        arguments = dict(model_kwargs)
        prior = arguments.pop("prior", self.model.Prior())
        sizes = Sizes(**arguments)
        batches = deal(rng_key[0], labels, n_items=sizes.n_items, batch_size=self.batch_size)
        keys_fit, keys_draw, state = _start(rng_key, prior, model=self.model, sizes=sizes)
        elbo = []
        ends = np.linspace(0, num_warmup, min(num_warmup, TRACE_POINTS) + 1).astype(int)
        # disable=None: shown on terminals only
        with tqdm(
            total=num_warmup, desc="svi", unit="step", disable=None if self.progress else True
        ) as bar:
            for begin, end in pairwise(ends):
                state, mean_elbo = _climb(
                    keys_fit,
                    state,
                    batches,
                    prior,
                    (int(begin), int(end), num_warmup),
                    model=self.model,
                    sizes=sizes,
                )
                elbo.append(np.asarray(mean_elbo))
                bar.update(end - begin)
        fitted = jax.vmap(optim.Adam(FIRST_STEP).get_params)(state)
        trace = jnp.asarray(np.stack(elbo, axis=1)) if elbo else jnp.zeros((len(rng_key), 0))
        return KernelState(z=fitted.loc, guide=fitted, elbo=trace, rng_key=keys_draw)

    def sample(
        self, state: KernelState, model_args: tuple[Labels], model_kwargs: dict[str, Any]
    ) -> KernelState:
        """One draw of each chain's guide."""

        def sample_one(state: KernelState) -> KernelState:
            key_rest, key_draw = jax.random.split(state.rng_key)
            z = _draw(key_draw, state.guide)
            return state._replace(z=z, rng_key=key_rest)

        return jax.vmap(sample_one)(state)


def read_draw(
    kernel: Variational, state: KernelState, labels: Labels, arguments: dict[str, Any]
) -> Draw:
    """What the chains have drawn last, with the logarithm of its importance weight."""
    model = kernel.model

    def read_one(
        chain: tuple[dict[str, Array], Guide],
    ) -> tuple[dict[str, Array], Float[Array, "item cls"], Float[Array, ""]]:
        z, guide = chain
        sites = constrain_fn(model.model, (_no_labels(),), arguments, z)
        params = {name: sites[name] for name in model.Params._fields}
        log_joint = model.label_log_joint(
            model.Params(**params), labels, n_items=arguments["n_items"]
        )
        # The density of no labels is the prior's.
        log_prior = -potential_energy(model.model, (_no_labels(),), arguments, z)
        log_likelihood = jax.nn.logsumexp(log_joint, axis=-1).sum()
        return params, log_joint, log_prior + log_likelihood - _log_density(guide, z)

    params, log_joint, log_weight = jax.lax.map(read_one, (state.z, state.guide))
    return params, log_joint, {"log_weight": log_weight}


def optimisation(state: KernelState, *, n_steps: int) -> xr.Dataset:
    """The trace of each chain's ELBO, at the last of the steps that each point averages."""
    n_points = state.elbo.shape[1]
    ends = np.linspace(0, n_steps, n_points + 1).astype(int)[1:]
    return dataset_of({"elbo": (("chain", "step"), state.elbo)}, coords={"step": ends})


def deal(rng_key: PRNGKeyArray, labels: Labels, *, n_items: int, batch_size: int) -> Batches:
    """Deal the items into batches of at most `batch_size`, whose sizes differ by one at most.

    Args:
        rng_key: the source of randomness.
        labels: the observed labels, sorted by item.
        n_items: number of items, including those without a label.
        batch_size: largest number of items in a batch.

    Examples:
        Three items, of which the first has two labels:

        >>> import jax
        >>> import jax.numpy as jnp
        >>> labels = Labels(*jnp.array([[0, 0, 1, 2], [0, 1, 0, 0], [1, 1, 0, 1]]))
        >>> batches = deal(jax.random.key(0), labels, n_items=3, batch_size=2)
        >>> batches.item.shape, sorted(batches.item.ravel().tolist())
        ((2, 2), [0, 1, 2, 3])
    """
    n_batches = -(-n_items // batch_size)
    # NumPy's permutation, seeded by the key: there is nothing to compile
    order = np.random.default_rng(np.asarray(jax.random.key_data(rng_key))).permutation(n_items)
    groups = np.array_split(order, n_batches)
    size = len(groups[0])
    item, worker, label = (np.asarray(codes) for codes in labels[:3])
    ends = np.searchsorted(item, np.arange(n_items + 1))
    n_labels = np.diff(ends)
    width = max(int(n_labels[group].sum()) for group in groups)
    dealt = np.full((n_batches, size), n_items, dtype=np.int32)
    gold = None if labels.gold is None else np.full((n_batches, size), -1, dtype=np.int32)
    codes = np.zeros((3, n_batches, width), dtype=np.int32)
    codes[0] = size
    for batch, group in enumerate(groups):
        dealt[batch, : len(group)] = group
        if gold is not None:
            gold[batch, : len(group)] = np.asarray(labels.gold)[group]
        place = np.repeat(np.arange(len(group)), n_labels[group])
        first = np.cumsum(n_labels[group]) - n_labels[group]
        rows = (ends[group] - first)[place] + np.arange(len(place))
        codes[:, batch, : len(place)] = place, worker[rows], label[rows]
    known = None if gold is None else jnp.asarray(gold)
    at, worker_of, label_of = (jnp.asarray(codes[field]) for field in range(3))
    coded = Labels(at, worker_of, label_of, known)
    return Batches(item=jnp.asarray(dealt), labels=coded)


def batch_elbo(
    rng_key: PRNGKeyArray,
    guide: Guide,
    batches: Batches,
    batch: Int[Array, ""] | int,
    prior: Any,
    *,
    model: ModuleType,
    sizes: Sizes,
) -> Float[Array, ""]:
    """Estimate the ELBO, in nats, from one draw of the guide and one batch.

    Args:
        rng_key: the source of randomness.
        guide: the guide of all parameters.
        batches: the labels, dealt into batches.
        batch: index of the batch to use.
        prior: the model's `Prior`.
        model: a module of `bayescrowd.models` that reads crowd labels.
        sizes: numbers of items, workers and classes of all labels.
    """
    n_batches, size = batches.item.shape
    item = batches.item[batch]
    labels = jax.tree.map(lambda codes: codes[batch], batches.labels)
    of_items = _sites_of_items(model, sizes.n_classes)
    seen = Guide(*({k: v[item] if k in of_items else v for k, v in part.items()} for part in guide))
    times = jnp.where(item < sizes.n_items, float(n_batches), 0.0)
    entropy = sum(
        ((times if site in of_items else 1.0) * (log_scale + _ENTROPY)).sum()
        for site, log_scale in seen.log_scale.items()
    )
    log_density = -potential_energy(
        _Weighted(model.model, times),
        (labels,),
        {**sizes._replace(n_items=size)._asdict(), "prior": prior},
        _draw(rng_key, seen),
    )
    return log_density + entropy


_ENTROPY = 0.5 * np.log(2 * np.pi * np.e)
"""Entropy of a standard normal, in nats."""


class _Weighted(Messenger):
    """Multiplies each item's log densities by its weight."""

    def __init__(self, fn: Any, weight: Float[Array, " item"]) -> None:
        self.weight = weight
        super().__init__(fn)

    def process_message(self, msg: dict[str, Any]) -> None:
        if any(frame.name == "item" for frame in msg.get("cond_indep_stack", ())):
            scale = msg.get("scale")
            msg["scale"] = self.weight if scale is None else scale * self.weight


def _sites_of_items(model: ModuleType, n_classes: int) -> frozenset[str]:
    """Sites with a value for each item; a batch sees only a part of their guide."""
    tiny = {"n_items": 1, "n_workers": 1, "n_classes": n_classes}
    seeded = handlers.seed(model.model, rng_seed=0)
    trace = handlers.trace(seeded).get_trace(_no_labels(), **tiny)
    return frozenset(
        name
        for name in model.Params._fields
        if any(frame.name == "item" for frame in trace[name]["cond_indep_stack"])
    )


def _no_labels() -> Labels:
    return Labels(*(jnp.zeros(0, int) for _ in range(3)))


@partial(jax.jit, static_argnames=("model", "sizes"))
def _start(rng_keys: Any, prior: Any, *, model: ModuleType, sizes: Sizes) -> tuple[Any, Any, Any]:
    """Keys to fit with, keys to draw with, and the optimiser's states around the first guide."""
    keys_fit, keys_draw = jax.vmap(jax.random.split, out_axes=1)(rng_keys)
    guide = _first_guide(prior, model=model, sizes=sizes)
    guides = jax.tree.map(lambda leaf: jnp.stack([leaf] * len(rng_keys)), guide)
    return keys_fit, keys_draw, jax.vmap(optim.Adam(FIRST_STEP).init)(guides)


def _first_guide(prior: Any, *, model: ModuleType, sizes: Sizes) -> Guide:
    """Normals around the prior means."""
    at_means = handlers.substitute(model.model, substitute_fn=_mean_of_site)
    trace = handlers.trace(at_means).get_trace(_no_labels(), **sizes._asdict(), prior=prior)
    dtype = jnp.result_type(float)  # not a weak one, which every step would compile anew
    loc = {
        name: jnp.asarray(biject_to(site["fn"].support).inv(site["value"]), dtype)
        for name, site in trace.items()
        if site["type"] == "sample" and not site["is_observed"]
    }
    log_scale = {site: jnp.full_like(z, jnp.log(FIRST_SCALE)) for site, z in loc.items()}
    return Guide(loc=loc, log_scale=log_scale)


def _mean_of_site(site: dict[str, Any]) -> Any:
    return site["fn"].mean if site["type"] == "sample" and not site["is_observed"] else None


@partial(jax.jit, static_argnames=("model", "sizes"))
def _climb(
    rng_keys: Any,
    states: Any,
    batches: Batches,
    prior: Any,
    steps: tuple[Any, Any, Any],
    *,
    model: ModuleType,
    sizes: Sizes,
) -> tuple[Any, Float[Array, " chain"]]:
    """Make the steps from `steps[0]` up to `steps[1]`, of `steps[2]` in all.

    Chains run one after another: a step consists mostly of scatter-adds, which gain nothing from
    running in parallel.
    """
    begin, end, n_steps = steps
    n_batches = batches.item.shape[0]
    adam = optim.Adam(lambda i: FIRST_STEP * (LAST_STEP / FIRST_STEP) ** (i / n_steps))

    def loss(guide: Guide, key: PRNGKeyArray, batch: Int[Array, ""]) -> Float[Array, ""]:
        return -batch_elbo(key, guide, batches, batch, prior, model=model, sizes=sizes)

    def step(i: Any, carry: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        key, state, total = carry
        value, slope = jax.value_and_grad(loss)(
            adam.get_params(state), jax.random.fold_in(key, i), i % n_batches
        )
        return key, adam.update(slope, state), total - value

    def climb_one(chain: tuple[Any, Any]) -> tuple[Any, Float[Array, ""]]:
        key, state = chain
        _, state, total = jax.lax.fori_loop(begin, end, step, (key, state, jnp.zeros(())))
        return state, total / (end - begin)

    return jax.lax.map(climb_one, (rng_keys, states))


def _draw(rng_key: PRNGKeyArray, guide: Guide) -> dict[str, Array]:
    # One call of the generator, since every call costs compilation time.
    loc, unravel = ravel_pytree(guide.loc)
    scale = jnp.exp(ravel_pytree(guide.log_scale)[0])
    return unravel(loc + scale * jax.random.normal(rng_key, loc.shape, loc.dtype))


def _log_density(guide: Guide, z: dict[str, Array]) -> Float[Array, ""]:
    """Log density of unconstrained parameters under the guide."""
    value, loc, log_scale = (ravel_pytree(part)[0] for part in (z, *guide))
    return jax.scipy.stats.norm.logpdf(value, loc, jnp.exp(log_scale)).sum()
