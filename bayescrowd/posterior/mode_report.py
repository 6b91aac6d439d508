"""What a user has to know about the modes in which chains stay, in plain words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int

from bayescrowd.posterior.chain_groups import group_chains, stay_apart
from bayescrowd.posterior.convergence import LEAST_ESS_PER_CHAIN

__all__ = ["mode_note", "mode_problems", "unweighed_modes"]

MOST_LEFT = 0.01
"""Largest weight of modes without chains that a user need not worry about."""

LEAST_TO_TELL = 4 * LEAST_ESS_PER_CHAIN
"""Draws per chain below which a good chain may lack the ESS that shows that it is at rest."""


def mode_problems(modes: xr.Dataset) -> list[str]:
    """What a user has to know about draws from several modes, in plain words.

    Args:
        modes: the group `modes` of a container.
    """
    of_chain = modes["mode_of_chain"].to_numpy()
    weight = modes["weight"].to_numpy()
    has_chains = np.isin(np.arange(len(weight)), of_chain)
    if has_chains.sum() == 1 and weight[~has_chains].sum() <= MOST_LEFT:
        return []
    heights, errors = (modes[name].to_numpy() for name in ("log_evidence", "log_evidence_error"))
    parts = []
    for mode in range(len(weight)):
        chains = _names_of_chains(np.flatnonzero(of_chain == mode))
        gap = f", {heights[mode] - heights[0]:+.1f} nats, give or take {errors[mode]:.1f}"
        parts.append(f"{weight[mode]:.2g} in mode {mode} ({chains}{gap if mode else ''})")
    differences = [_difference(modes, mode) for mode in range(1, len(weight))]
    found = (
        f"the posterior has {len(weight)} modes that chains hardly leave, with the weights "
        f"{', '.join(parts)}; {'; '.join(differences)}"
    )
    return [found]


def mode_note(modes: xr.Dataset) -> str:
    """What a user may know about modes that chains have left for good reason; may be empty."""
    has_chains = np.isin(np.arange(modes.sizes["mode"]), modes["mode_of_chain"].to_numpy())
    n_left = int((~has_chains).sum())
    if mode_problems(modes) or n_left == 0:
        return ""
    share = float(modes["weight"].to_numpy()[~has_chains].sum())
    which = "another mode, which holds" if n_left == 1 else f"{n_left} other modes, which hold"
    amount = f"{share:.1g}" if share > 0 else "nothing to speak of"
    return f"Chains found and left {which} {amount} of the posterior."


def unweighed_modes(
    variables: Sequence[Float[np.ndarray, "chain draw ..."]], label_posterior: xr.Dataset
) -> str:
    """Where chains are that are apart and cannot be weighed, or between which classes they move.

    Empty if draws are too few to tell.

    Args:
        variables: everything that is watched.
        label_posterior: the group `label_posterior` of a container.
    """
    if variables[0].shape[1] < LEAST_TO_TELL:
        return ""
    group_of_chain = group_chains(variables)
    probability = label_posterior["probability"].transpose("chain", "task", "cls").to_numpy()
    classes = label_posterior.indexes["cls"]
    if group_of_chain.any() and stay_apart(variables, group_of_chain):
        return _places(probability, classes, group_of_chain)
    answers = probability.argmax(axis=-1)
    n_apart = (answers[:, None] != answers).sum(axis=-1)
    here, there = np.unravel_index(n_apart.argmax(), n_apart.shape)
    between = ""
    if n_apart.any():
        first, other, _ = _most_exchanged(answers[here], answers[there])
        between = (
            f" mostly between {str(classes[first])!r} and {str(classes[other])!r} "
            f"({n_apart.max():,} of {answers.shape[1]:,} tasks differ between chains {here} and "
            f"{there})"
        )
    return f"chains have not settled, they still move{between}; no weights of modes can be given"


def _places(
    probability: Float[np.ndarray, "chain task cls"],
    classes: pd.Index,
    group_of_chain: Int[np.ndarray, " chain"],
) -> str:
    """The places of groups of chains, the one with the most chains first."""
    groups = np.argsort(-np.bincount(group_of_chain), kind="stable")
    answers = np.stack([probability[group_of_chain == g].mean(axis=0).argmax(-1) for g in groups])
    parts = [f"that of {_names_of_chains(np.flatnonzero(group_of_chain == groups[0]))}"]
    for group, there in zip(groups[1:], answers[1:], strict=True):
        chains = _names_of_chains(np.flatnonzero(group_of_chain == group))
        parts.append(f"that of {chains}, which {_apart(answers[0], there, classes, 'the first')}")
    return f"chains stay in {len(groups)} modes, whose weights are not known: {'; '.join(parts)}"


def _names_of_chains(chains: Int[np.ndarray, " chain"]) -> str:
    """'no chain', 'chain 0', or 'chains 1 and 3'."""
    names = [str(chain) for chain in chains]
    if not names:
        return "no chain"
    if len(names) == 1:
        return f"chain {names[0]}"
    return f"chains {', '.join(names[:-1])} and {names[-1]}"


def _difference(modes: xr.Dataset, mode: int) -> str:
    """On how many tasks a mode answers differently from the heaviest one, and how mostly."""
    answers = modes["probability"].transpose("mode", "task", "cls").to_numpy().argmax(axis=-1)
    return f"mode {mode} {_apart(answers[0], answers[mode], modes.indexes['cls'], 'mode 0')}"


def _apart(
    here: Int[np.ndarray, " task"], there: Int[np.ndarray, " task"], classes: pd.Index, name: str
) -> str:
    """On how many tasks the answers there differ from those here, and how mostly."""
    n_apart = (here != there).sum()
    if n_apart == 0:
        return "differs in its parameters, not in the most probable classes"
    first, other, n_most = _most_exchanged(here, there)
    return (
        f"gives {n_apart:,} of {len(here):,} tasks another class than {name}, "
        f"mostly {str(classes[other])!r} for {str(classes[first])!r} ({n_most:,})"
    )


def _most_exchanged(
    here: Int[np.ndarray, " task"], there: Int[np.ndarray, " task"]
) -> tuple[int, int, int]:
    """The class here and the other class there that meet most often, and on how many tasks."""
    is_apart = here != there
    pairs, counts = np.unique(
        np.stack([here[is_apart], there[is_apart]], axis=1), axis=0, return_counts=True
    )
    first, other = pairs[counts.argmax()]
    return int(first), int(other), int(counts.max())
