"""Names of the classes, where the prior of a model may hardly tell them apart.

The likelihood is the same under every renaming of the true classes. Under a pooled model only the
prior of the crowd's matrix knows names, and where a crowd confuses some classes with each other it
knows them only just: namings of those classes are modes of similar weight, which sweeps connect
through states that are improbable under all of them.

An exchange of two names leads from one mode to the other at once (`draw_naming`). It is a
Metropolis step (W. K. Hastings 1970, "Monte Carlo sampling methods using Markov chains and their
applications", Biometrika 57) that proposes a random pair of classes and is accepted with
probability min(1, r), where the ratio r of the posteriors is that of the priors.

What was sampled under several names is reported under those that the labels suggest
(`naming_of_labels`): the names of each draw are exchanged for as long as more labels agree with the
classes than before, which is the rule by which whole chains are named
(`bayescrowd.posterior.alignment`). So a crowd that is clearly right may visit the naming in which
it is wrong, as often as the prior allows, and nobody sees it. To forbid such visits would be worse:
a chain that has strayed there could not return either.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

__all__ = [
    "PROPOSALS_PER_CLASS",
    "TIE",
    "draw_naming",
    "naming_of_labels",
]

PROPOSALS_PER_CLASS = 4
"""Proposals of each sweep for every class. On a panel of four judges and six classes, of which they
confuse three, 5,000 sweeps of four chains have the information of 7 draws without exchanges, and of
more than a hundred with these."""

MOST_IN_CYCLES = 32
"""Number of classes up to which cycles of three names are tried, whose number is cubic in it."""

TIE = 1e-6
"""Another naming has to gain more than this share of the labels to replace the old one."""


def draw_naming(
    rng_key: PRNGKeyArray,
    log_prior: Float[Array, "cls name"],
    gold: Int[Array, " item"] | None,
) -> Int[Array, " name"]:
    """Which class bears each name after some proposals.

    Args:
        rng_key: the source of randomness.
        log_prior: log prior density of the parameters of each class if it bore each name.
        gold: known class of each item, -1 elsewhere; these classes keep their names.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> clear, doubtful = (jnp.array([[0.0, odds], [odds, 0.0]]) for odds in (-9.0, 0.1))
        >>> key = jax.random.key(2)
        >>> [draw_naming(key, table, None).tolist() for table in (clear, doubtful)]
        [[0, 1], [1, 0]]
    """
    n_classes = len(log_prior)
    n_proposals = PROPOSALS_PER_CLASS * n_classes
    key_one, key_step, key_accept = jax.random.split(rng_key, 3)
    one = jax.random.randint(key_one, (n_proposals,), 0, n_classes)
    step = jax.random.randint(key_step, (n_proposals,), 1, n_classes)
    pairs = jnp.stack([one, (one + step) % n_classes], axis=1)
    log_u = jnp.log1p(-jax.random.uniform(key_accept, (n_proposals,)))
    is_fixed = _is_known(gold, n_classes)

    def propose(naming: Int[Array, " name"], proposal: Any) -> tuple[Int[Array, " name"], None]:
        pair, log_u = proposal
        before, after = naming[pair], naming[pair[::-1]]
        log_odds = (log_prior[after, pair] - log_prior[before, pair]).sum()
        # A comparison with NaN is false: a naming without a density is never entered.
        is_accepted = (log_u < log_odds) & ~is_fixed[pair].any()
        return jnp.where(is_accepted, naming.at[pair].set(after), naming), None

    return jax.lax.scan(propose, jnp.arange(n_classes), (pairs, log_u))[0]


def naming_of_labels(
    agreement: Float[Array, "cls observed"], gold: Int[Array, " item"] | None
) -> Int[Array, " name"]:
    """Which class bears each name if names are exchanged while more labels agree than before.

    Two classes exchange their names, or three pass them on in a cycle.

    Args:
        agreement: expected number of labels of each class on items of each true class.
        gold: known class of each item, -1 elsewhere; these classes keep their names.

    Examples:
        >>> import jax.numpy as jnp
        >>> naming_of_labels(jnp.array([[1.0, 9.0, 0.0], [2.0, 1.0, 7.0], [8.0, 0.0, 1.0]]), None)
        Array([2, 0, 1], dtype=int32)
    """
    n_classes = len(agreement)
    least = TIE * agreement.sum()
    is_free = ~_is_known(gold, n_classes)
    # Name a goes to the class that bears b, b to that of c, and c to that of a; b = c is a pair.
    a, b, c = jnp.ix_(*[jnp.arange(n_classes)] * 3)
    if n_classes > MOST_IN_CYCLES:
        c = b
    may_change = is_free[a] & is_free[b] & is_free[c] & (a != b) & (a != c)

    def best_change(naming: Int[Array, " name"]) -> tuple[Any, Int[Array, " name"]]:
        named = agreement[naming]
        kept = jnp.diagonal(named)
        gain = (named[b, a] - kept[a]) + (named[c, b] - kept[b]) + (named[a, c] - kept[c])
        gain = jnp.where(may_change, gain, 0.0)
        place = jnp.unravel_index(gain.argmax(), gain.shape)
        first, second = place[0], place[1]
        last = place[2] if n_classes <= MOST_IN_CYCLES else second
        changed = naming.at[first].set(naming[second])
        changed = changed.at[second].set(naming[last]).at[last].set(naming[first])
        return gain.max(), changed

    def step(carry: Any) -> Any:
        return (*best_change(carry[1]), carry[1])

    start = jnp.arange(n_classes)
    first = (*best_change(start), start)
    return jax.lax.while_loop(lambda carry: carry[0] > least, step, first)[2]


def _is_known(gold: Int[Array, " item"] | None, n_classes: int) -> Bool[Array, " cls"]:
    """Classes that have a known item."""
    if gold is None:
        return jnp.zeros(n_classes, bool)
    # A place beyond the last class is dropped; a negative one would be counted from the end.
    place = jnp.where(gold < 0, n_classes, gold)
    return jnp.zeros(n_classes, bool).at[place].set(True, mode="drop")
