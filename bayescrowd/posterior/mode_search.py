"""How Gibbs sampling goes on where chains disagree: it weighs modes and lets chains jump.

After a look at which chains are apart, the modes they are in are weighed (see
`bayescrowd.posterior.modes`). Chains at rest in modes that hold next to nothing of the posterior
start anew from states of chains in the others, since sweeps would hardly ever lead them there; they
warm up again, and the modes they left are reported. Chains that still move stay where they are:
where they would end is not known. From then on, chains also jump between all places where chains
have been (see `bayescrowd.posterior.jumps`).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int, PRNGKeyArray
from scipy.special import softmax

from bayescrowd.posterior.chain_groups import are_at_rest, group_chains
from bayescrowd.posterior.chains import Aim, Extension, Recording
from bayescrowd.posterior.container import Variable, dataset_of
from bayescrowd.posterior.convergence import Verdict, judge
from bayescrowd.posterior.cost import sweep_work
from bayescrowd.posterior.crowd_adapter import CrowdProblem
from bayescrowd.posterior.gibbs import KernelState, collapsed_of, conditionals_of
from bayescrowd.posterior.jumps import Place, fit_proposals, jump
from bayescrowd.posterior.modes import (
    Modes,
    are_known,
    is_negligible,
    weigh_modes,
)

__all__ = ["ModeSearch", "extension_of"]

MOST_WORK = 2_000_000_000
"""Work of a chain's sweeps (`sweep_work`) at which Gibbs sampling gives up: four chains take 80 to
180 CPU seconds, measured while other work kept the caches busy, and half as long on two cores."""

LEAST_DRAWS = 400
"""Kept draws per chain below which even independent ones can miss R-hat 1.01 among many entries."""


class _Mode(NamedTuple):
    log_evidence: float
    error: float
    probas: Float[np.ndarray, "item cls"]


class ModeSearch:
    """Judges draws, and remembers the modes that chains have left.

    Args:
        problem: the crowd and its model.
        rng_key: the source of randomness.
    """

    def __init__(self, problem: CrowdProblem, rng_key: PRNGKeyArray) -> None:
        self._problem = problem
        self._rng_key = rng_key
        self._left: list[_Mode] = []

    @property
    def can_jump(self) -> bool:
        """Whether the model's collapsed density is known."""
        return conditionals_of(self._problem.model).collapsed is not None

    def judge(self, recording: Recording) -> Verdict:
        """Whether chains agree about everything and know it well enough."""
        return judge(self._variables(recording))

    def aim(self, recording: Recording) -> Aim:
        """Where chains start anew, and how they jump from now on."""
        problem = self._problem
        collapsed = collapsed_of(problem.model)
        named = problem.named(recording)
        places = _places(recording.params, recording.label_mean)
        if named.is_renamed:
            params = {name: values for name, (_, values) in named.params.items()}
            both = [*places, *_places(params, named.probas)]
        else:
            both = places
        source = self._leave(recording, named.probas)
        return Aim(
            start=partial(_start_from, source),
            jump=partial(
                jump,
                proposals=fit_proposals(collapsed, both, _known(problem)),
                labels=problem.data,
                prior=problem.prior,
                collapsed=collapsed,
                n_workers=problem.sizes.n_workers,
            ),
        )

    def modes(self, recording: Recording) -> xr.Dataset | None:
        """The modes that chains stay in, and those they left.

        None if there was only one, or if chains still move or weights are not known.
        """
        is_apart = recording.verdict is Verdict.APART
        if not self.can_jump or not (is_apart or self._left):
            return None
        variables = self._variables(recording)
        alone = np.zeros(len(recording.label_mean), dtype=int)
        mode_of_chain = group_chains(variables) if is_apart else alone
        if not are_at_rest(variables, mode_of_chain).all():
            return None
        found = self._find(recording, mode_of_chain)
        stayed = _modes(found, self._problem.named(recording).probas)
        modes = [*stayed, *self._left]
        if len(modes) < 2:
            return None
        log_evidence, error = np.array([[mode.log_evidence, mode.error] for mode in modes]).T
        if not are_known(log_evidence, error):
            return None
        group: dict[str, Variable] = {
            "weight": (("mode",), softmax(log_evidence)),
            "log_evidence": (("mode",), log_evidence),
            "log_evidence_error": (("mode",), error),
            "mode_of_chain": (("chain",), found.mode_of_chain),
            "probability": (("mode", "task", "cls"), np.stack([mode.probas for mode in modes])),
        }
        return dataset_of(group, coords=self._problem.coords)

    def _leave(
        self, recording: Recording, probas: Float[np.ndarray, "chain item cls"]
    ) -> Int[np.ndarray, " chain"]:
        """The chain from whose state each chain goes on; modes that are left are remembered.

        Args:
            recording: the draws.
            probas: class probabilities of each chain, classes named as the user names them.
        """
        variables = self._variables(recording)
        mode_of_chain = group_chains(variables)
        at_rest = are_at_rest(variables, mode_of_chain)
        if at_rest.sum() < 2:  # nothing to compare
            return np.arange(len(mode_of_chain))
        found = self._find(recording, mode_of_chain)
        by_weight = np.empty_like(at_rest)
        by_weight[found.mode_of_chain] = at_rest[mode_of_chain]
        source = _sources(found, by_weight)
        modes = _modes(found, probas)
        is_left = ~np.isin(np.arange(len(modes)), found.mode_of_chain[source])
        self._left += [mode for mode, left in zip(modes, is_left, strict=True) if left]
        return source

    def _variables(self, recording: Recording) -> list[np.ndarray]:
        params = self._problem.named(recording).params.values()
        return [recording.statistics["log_likelihood"], *(values for _, values in params)]

    def _find(self, recording: Recording, mode_of_chain: Int[np.ndarray, " chain"]) -> Modes:
        """Weigh modes."""
        self._rng_key, key = jax.random.split(self._rng_key)
        problem = self._problem
        return weigh_modes(
            key,
            mode_of_chain,
            _places(recording.params, recording.label_mean),
            problem.data,
            problem.prior,
            model=problem.model,
            n_workers=problem.sizes.n_workers,
        )


def extension_of(
    rng_key: PRNGKeyArray,
    problem: Any,
    method: str,
    *,
    chains: int,
    draws: int,
    most_draws: int | None,
) -> tuple[Extension | None, ModeSearch | None]:
    """How sampling goes on until chains agree, and what finds their modes, if it can and shall.

    Args:
        rng_key: the source of randomness of the search for modes.
        problem: the crowd or the features, with their model.
        method: the sampler.
        chains: number of chains.
        draws: number of draws of each chain that are kept.
        most_draws: largest number of draws of each chain; None for the default.

    Raises:
        ValueError: `most_draws` is less than `draws`, or the draws are a fixed number here.
    """
    if most_draws is not None and most_draws < draws:
        raise ValueError(f"most_draws={most_draws}: expected at least draws={draws}")
    if not isinstance(problem, CrowdProblem) or method == "svi":
        if most_draws not in (None, draws):
            raise ValueError(
                "most_draws is for samplers of crowd models; fits of 'svi' and models of features "
                "make exactly `draws` draws"
            )
        return None, None
    if most_draws is None:
        # Gradients cost a hundred times as much as sweeps: NUTS goes on if it is asked to.
        goes_on = method == "gibbs" and draws >= LEAST_DRAWS
        most_draws = int(MOST_WORK / sweep_work(problem)) if goes_on else draws
    if chains < 2 or most_draws <= draws:
        return None, None
    search = ModeSearch(problem, rng_key)
    if method == "gibbs" and search.can_jump:
        return Extension(most_draws, search.judge, search.aim), search
    return Extension(most_draws, search.judge), None


def _known(problem: CrowdProblem) -> Int[np.ndarray, " item"] | None:
    """Known classes of items, -1 elsewhere; None if none is known."""
    return None if problem.data.gold is None else np.asarray(problem.data.gold)


def _mean_over_chains(probas: Float[np.ndarray, "chain item cls"]) -> Float[np.ndarray, "item cls"]:
    """Class probabilities averaged over chains."""
    return np.asarray(probas.mean(axis=0))


def _places(
    params: dict[str, np.ndarray], probas: Float[np.ndarray, "chain item cls"]
) -> list[Place]:
    return [
        Place(probas[chain], {name: values[chain] for name, values in params.items()})
        for chain in range(len(probas))
    ]


def _modes(found: Modes, probas: Float[np.ndarray, "chain item cls"]) -> list[_Mode]:
    return [
        _Mode(float(height), float(error), _mean_over_chains(probas[found.mode_of_chain == mode]))
        for mode, (height, error) in enumerate(zip(found.log_evidence, found.error, strict=True))
    ]


def _sources(found: Modes, at_rest: Bool[np.ndarray, " mode"]) -> Int[np.ndarray, " chain"]:
    """The chain from whose state each chain goes on.

    A chain leaves its mode if that is negligible beside the heaviest one, as far as chains are at
    rest in both. It goes on in the mode that has the fewest chains for its weight.
    """
    source = np.arange(len(found.mode_of_chain))
    best = int(at_rest.argmax())  # modes are in the order of their weights
    is_left = is_negligible(found.log_evidence, found.error, best) & at_rest
    of_chain = found.mode_of_chain.copy()
    for chain in np.flatnonzero(is_left[found.mode_of_chain]):
        n_chains = np.bincount(of_chain, minlength=len(is_left))
        can_enter = at_rest & ~is_left
        mode = int(np.where(can_enter, found.weight / (n_chains + 1), -1.0).argmax())
        members = np.flatnonzero(found.mode_of_chain == mode)
        source[chain] = members[chain % len(members)]
        of_chain[chain] = mode
    return source


def _start_from(source: Int[np.ndarray, " chain"], state: KernelState) -> KernelState:
    """States of other chains with each chain's own random numbers."""
    taken = jax.tree.map(lambda leaf: leaf[source], state._replace(rng_key=state.i))
    return taken._replace(rng_key=state.rng_key)
