"""The state of a policy as a value, and the decisions that are made from it.

A state holds everything that a decision depends on beside the policy's arguments: an earlier state
stays what it was whatever happens later. It is a function of the arguments and the events so far,
so that replaying the events leads to the same state.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np

from bayescrowd.budgeted.beliefs.naive_bayes import Belief
from bayescrowd.budgeted.query_book import QueryBook

__all__ = ["Ask", "Choice", "Decision", "Memory", "Position", "State", "Stop", "Wait"]

Memory = Any
"""What a policy remembers beyond the book and the belief: a value of a type of its own."""


_ANY_SEED = np.random.SeedSequence(0)
"""Seed of a generator whose state is then set; made once, since making it is slow."""


class Position(NamedTuple):
    """How far the stream of random numbers has been used: the state of NumPy's PCG64."""

    state: int
    """Where the generator is in its sequence."""
    increment: int
    """Which sequence it is."""
    has_half: int
    """Whether half of the last 64-bit number is still to be used."""
    half: int
    """That half."""

    @classmethod
    def after(cls, rng: np.random.Generator) -> Position:
        """The position that a generator has reached."""
        found = rng.bit_generator.state
        numbers = found["state"]
        return cls(numbers["state"], numbers["inc"], found["has_uint32"], found["uinteger"])

    def generator(self) -> np.random.Generator:
        """A new generator that continues from this position."""
        bits = np.random.PCG64(_ANY_SEED)
        bits.state = {
            "bit_generator": "PCG64",
            "state": {"state": self.state, "inc": self.increment},
            "has_uint32": self.has_half,
            "uinteger": self.half,
        }
        return np.random.Generator(bits)


class State(NamedTuple):
    """Everything that the next decision of a policy depends on; a value that never changes."""

    book: QueryBook
    """Money, open queries and counts."""
    belief: Belief
    """What is believed of the features, given the observations so far."""
    slots: tuple[tuple[int, ...], ...]
    """Values of each feature in the order in which its answers first showed them, as positions."""
    workers: Mapping[Hashable, int]
    """Number of each worker who was named, in the order in which they first appeared."""
    memory: Memory
    """What the policy itself remembers."""
    retry: int
    """Feature to ask about again, with another class, because one had no instance left; or -1."""
    position: Position
    """Where the next random number comes from."""


class Choice(NamedTuple):
    """The feature that a policy wants to ask about."""

    feature: int
    """Position of the feature."""
    memory: Memory
    """What the policy remembers if that question is asked."""


class Ask(NamedTuple):
    """The decision to ask a question."""

    feature: int
    """Position of the feature to ask about."""
    cls: int
    """Position of the class to ask about."""
    memory: Memory
    """What the policy remembers from then on."""
    position: Position
    """Where the next random number comes from."""


class Wait(NamedTuple):
    """The decision to ask nothing until an answer has come; the state stays as it is."""


class Stop(NamedTuple):
    """The decision to ask nothing any more; the state stays as it is."""

    reason: str
    """Why, in words for the user."""
    memory: Memory
    """What the policy would remember: what it found out on the way, for the user to look at."""


Decision = Ask | Wait | Stop
