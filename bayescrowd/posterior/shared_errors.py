"""Do raters err together more than the model can explain? A check of crowd models by their draws.

A. Gelman, X.-L. Meng and H. Stern (1996), "Posterior predictive assessment of model fitness via
realized discrepancies", Statistica Sinica 6. For some of the draws, classes of the tasks are drawn
given the observed labels, and a second crowd, classes and labels, is drawn for the same pairs of
tasks and workers. If the model is right, both crowds follow the same distribution given the
parameters, so that no function of classes and labels tells them apart. The function used here is
the correlation of two raters' errors on the same task, given its class:

    sum over pairs of e_a e_b  /  sum over pairs of sqrt(r_a (1 - r_a) r_b (1 - r_b)),

where e is 1 - r for a wrong label and -r for a right one, and r the share of wrong labels of the
rater on tasks of the class, shrunk towards all raters' share. The pairs are the labels of one task
by two raters; squares of sums give them in time linear in the labels.

Errors that correlate by rho make n votes worth ``n / (1 + (n - 1) rho)`` independent ones (L. Kish
1965, "Survey sampling", section 5.4). An excess over what the model expects is therefore judged by
two things: it has to be significant, and it has to inflate the votes' variance by a share that
matters.
"""

from __future__ import annotations

from functools import partial
from types import ModuleType
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from bayescrowd import models
from bayescrowd.models.dawid_skene import Labels
from bayescrowd.posterior.container import Container, group_names, group_of

__all__ = ["SharedErrors", "check_shared_errors", "error_correlation", "fit_problems"]

MOST_DRAWS, LEAST_DRAWS = 100, 30
"""Number of draws to compare with, evenly spaced: fewer where there are many labels."""

MOST_LABELS = 2e7
"""Largest number of labels over all draws, above which fewer draws are compared with."""

SHRINKAGE = 4.0
"""Labels that all raters' share of wrong labels is worth in a rater's share."""

LEAST_Z = 3.0
"""Standard deviations between observed and simulated correlation from which it is significant."""

LEAST_INFLATION = 0.1
"""Excess variance of the votes, as a share, from which shared errors matter."""


_CHECK = 16
"""Folded into the key of the posterior's seed, so that sampling and check do not share numbers."""


class SharedErrors(NamedTuple):
    """How raters' errors correlate in the labels, and in labels drawn from the model."""

    observed: Float[np.ndarray, " draw"]
    """Correlation in the observed labels, with classes of each draw."""
    simulated: Float[np.ndarray, " draw"]
    """Correlation in classes and labels simulated with each draw."""
    n_votes: float
    """Mean number of labels beside a label of the same task, plus one."""

    @property
    def excess(self) -> float:
        """Mean difference of observed and simulated correlation."""
        return float((self.observed - self.simulated).mean())

    @property
    def p_value(self) -> float:
        """Share of draws in which the simulated correlation is the larger, ties counting half."""
        gap = self.simulated - self.observed
        return float((gap > 0).mean() + (gap == 0).mean() / 2)

    @property
    def z(self) -> float:
        """The excess in standard deviations of the difference."""
        spread = float((self.observed - self.simulated).std())
        return self.excess / max(spread, 1e-12)

    @property
    def inflation(self) -> float:
        """Excess variance of the votes: (n - 1) times the excess correlation."""
        return (self.n_votes - 1) * self.excess

    @property
    def fits(self) -> bool:
        """Whether raters do not err together more than the model expects, as far as it matters."""
        return self.z < LEAST_Z or self.inflation < LEAST_INFLATION


def check_shared_errors(post: Container) -> SharedErrors | None:
    """Compare how errors correlate in the observed labels and in labels drawn from the model.

    Args:
        post: the result of `sample_posterior`.

    Returns:
        The correlations, or None where they cannot be computed: the draws are not those of a model
        of crowd labels, or no task has labels of two raters.

    Examples:
        >>> import bayescrowd as bc
        >>> from bayescrowd.posterior.shared_errors import check_shared_errors
        >>> labels = bc.simulate.crowd(60, 5, accuracy=0.8, seed=0).annotations
        >>> post = bc.sample_posterior(bc.models.dawid_skene, labels, chains=2, draws=50, warmup=20)
        >>> check_shared_errors(post).fits
        True
    """
    crowd = _crowd_of(post)
    if crowd is None:
        return None
    pairs, n_votes = _pairs(crowd)
    if n_votes <= 1:
        return None
    key = jax.random.fold_in(jax.random.key(int(post.attrs.get("seed", 0))), _CHECK)
    keys = jax.random.split(key, len(crowd.params["prevalence"]))
    observed, simulated = _correlations(
        keys,
        {name: jnp.asarray(values) for name, values in crowd.params.items()},
        Labels(*map(jnp.asarray, crowd.labels)),
        jnp.asarray(pairs),
        model=crowd.model,
        n_items=crowd.n_items,
        n_workers=crowd.n_workers,
    )
    return SharedErrors(
        np.asarray(observed, dtype=float), np.asarray(simulated, dtype=float), n_votes
    )


def fit_problems(found: SharedErrors | None, *, model: str) -> list[str]:
    """What the check says against the model and what to do about it, one sentence if anything.

    Args:
        found: the result of `check_shared_errors`.
        model: name of the model.
    """
    if found is None or found.fits:
        return []
    n_left = max(found.n_votes / (1 + found.inflation), 1.0)
    problem = (
        f"raters err together: given a task's class their errors correlate by "
        f"{found.observed.mean():.2f}, where the model expects {found.simulated.mean():.2f}, so "
        f"that {found.n_votes:.1f} votes on a task are worth about {n_left:.1f} of those that the "
        "model counts, and its probabilities are too sure; "
    )
    advice = "gold labels show how often they are wrong"
    if model != "task_subtypes":
        advice = "the model task_subtypes allows for shared errors, and " + advice
    return [problem + advice]


def error_correlation(
    labels: Labels,
    truth: Int[Array, " item"],
    pairs: Int[Array, " label"],
    *,
    n_workers: int,
    n_classes: int,
) -> Float[Array, ""]:
    """Mean correlation of the errors of two raters on a task, given its class.

    Args:
        labels: the labels.
        truth: class of each item.
        pairs: number of each label's pair of item and worker; repeated labels share a number.
        n_workers: number of workers.
        n_classes: number of classes.
    """
    of_label = truth[labels.item]
    wrong = (labels.label != of_label).astype(jnp.float32)
    rate = _wrong_rates(wrong, labels.worker, of_label, n_workers=n_workers, n_classes=n_classes)
    together = _pair_sum(wrong - rate, labels.item, pairs, n_items=len(truth))
    most = _pair_sum(jnp.sqrt(rate * (1 - rate)), labels.item, pairs, n_items=len(truth))
    return together / jnp.maximum(most, 1e-12)


def _wrong_rates(
    wrong: Float[Array, " label"],
    worker: Int[Array, " label"],
    truth: Int[Array, " label"],
    *,
    n_workers: int,
    n_classes: int,
) -> Float[Array, " label"]:
    """Share of wrong labels of each label's rater on tasks of its class, shrunk to all raters'."""
    both = jnp.stack([wrong, jnp.ones_like(wrong)], axis=-1)
    of_class = jnp.zeros((n_classes, 2)).at[truth].add(both)
    all_rate = (of_class[:, 0] + 1) / (of_class[:, 1] + 2)
    cell = worker * n_classes + truth
    of_rater = jnp.zeros((n_workers * n_classes, 2)).at[cell].add(both)[cell]
    return (of_rater[:, 0] + SHRINKAGE * all_rate[truth]) / (of_rater[:, 1] + SHRINKAGE)


def _pair_sum(
    values: Float[Array, " label"],
    item: Int[Array, " label"],
    pairs: Int[Array, " label"],
    *,
    n_items: int,
) -> Float[Array, ""]:
    """Sum of the products of two raters' values on the same item, each pair twice."""
    of_item = jnp.zeros(n_items).at[item].add(values)
    of_pair = jnp.zeros(len(pairs)).at[pairs].add(values)
    return (of_item**2).sum() - (of_pair**2).sum()


@partial(jax.jit, static_argnames=("model", "n_items", "n_workers"))
def _correlations(
    keys: Key[Array, " draw"],
    params: dict[str, Array],
    labels: Labels,
    pairs: Int[Array, " label"],
    *,
    model: ModuleType,
    n_items: int,
    n_workers: int,
) -> tuple[Float[Array, " draw"], Float[Array, " draw"]]:
    def of_draw(
        key_and_params: tuple[PRNGKeyArray, dict[str, Array]],
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        key, fields = key_and_params
        key_truth, key_crowd = jax.random.split(key)
        drawn = model.Params(**fields)
        log_joint = model.label_log_joint(drawn, labels, n_items=n_items)
        truth = jax.random.categorical(key_truth, log_joint)
        other = model.simulate_labels(key_crowd, drawn, labels.item, labels.worker, n_items=n_items)
        sizes = {"n_workers": n_workers, "n_classes": log_joint.shape[1]}
        return (
            error_correlation(labels, truth, pairs, **sizes),
            error_correlation(other.labels, other.truth, pairs, **sizes),
        )

    return jax.lax.map(of_draw, (keys, params))


class _Crowd(NamedTuple):
    """What the check needs of a container."""

    model: ModuleType
    params: dict[str, np.ndarray]
    labels: tuple[np.ndarray, np.ndarray, np.ndarray]
    n_items: int
    n_workers: int


def _crowd_of(post: Container) -> _Crowd | None:
    """The model, evenly spaced draws and the labels, if these are draws of a crowd model."""
    name = post.attrs.get("model")
    groups = {"posterior", "label_posterior", "constant_data", "observed_data"}
    if name not in models.catalogue("labels") or not groups <= set(group_names(post)):
        return None
    model: ModuleType = getattr(models, str(name))
    posterior = group_of(post, "posterior")
    codes = group_of(post, "constant_data")
    label = group_of(post, "observed_data")["label"].to_numpy()
    labels = (codes["task_code"].to_numpy(), codes["worker_code"].to_numpy(), label)
    n_wanted = int(np.clip(MOST_LABELS // max(len(label), 1), LEAST_DRAWS, MOST_DRAWS))
    n_drawn = posterior.sizes["chain"] * posterior.sizes["draw"]
    chosen = np.unique(np.linspace(0, n_drawn - 1, n_wanted).astype(int))
    chain, draw = np.divmod(chosen, posterior.sizes["draw"])
    params = {name: posterior[name].to_numpy()[chain, draw] for name in model.Params._fields}
    n_items = group_of(post, "label_posterior").sizes["task"]
    return _Crowd(model, params, labels, n_items, posterior.sizes["worker"])


def _pairs(crowd: _Crowd) -> tuple[Int[np.ndarray, " label"], float]:
    """Number of each label's pair of item and worker, and the votes beside a label, plus one."""
    item, worker, _ = crowd.labels
    flat = item.astype(np.int64) * crowd.n_workers + worker
    ids, pairs, sizes = np.unique(flat, return_inverse=True, return_counts=True)
    n_labels = np.bincount(item, minlength=crowd.n_items)
    if len(ids) == 0:
        return pairs, 0.0
    beside = n_labels[item] - sizes[pairs]
    return pairs, 1 + float(beside.mean())
