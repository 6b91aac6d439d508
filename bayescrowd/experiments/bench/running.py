"""Run a bench: measure each method on each crowd, unless the journal has it already."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence

from bayescrowd.experiments.bench.comparison import BASELINE, Comparison
from bayescrowd.experiments.bench.contenders import Contender, exported_contender
from bayescrowd.experiments.bench.crowds import BenchCrowd
from bayescrowd.experiments.bench.measurement import Failure, Measurement, measure
from bayescrowd.experiments.bench.records import BenchJournal

__all__ = ["DEFAULT_REFERENCE", "run_bench"]

DEFAULT_REFERENCE = "AutoAggregator"
"""Method to which the others are compared unless another is named."""


def run_bench(
    crowds: Sequence[BenchCrowd],
    contenders: Sequence[Contender],
    *,
    reference: str = DEFAULT_REFERENCE,
    journal: str | os.PathLike[str] | None = None,
    announce: Callable[[str, str], None] = lambda crowd, method: None,
) -> Comparison:
    """Measure every method on every crowd.

    The majority vote and the reference are measured even if they are not listed.

    Args:
        crowds: the crowds, from `read_crowds`.
        contenders: the methods.
        reference: name of the method to which the others are compared.
        journal: file in which finished measurements are kept, and from which they are taken.
        announce: called with the names of crowd and method before each measurement.

    Raises:
        ValueError: there is no crowd, the journal cannot be used, or the reference is unknown.

    Examples:
        >>> import bayescrowd as bc
        >>> from bayescrowd.experiments.bench.crowds import BenchCrowd
        >>> data = bc.simulate.crowd(50, 5, 2, accuracy=0.8, seed=0)
        >>> crowd = BenchCrowd("simulated", data.annotations, data.truth, 0, "")
        >>> found = run_bench([crowd], [exported_contender("MajorityVote")])
        >>> found.scores("error").round(2).columns.to_list()
        ['MajorityVote', 'AutoAggregator']
    """
    if not crowds:
        raise ValueError("there is no crowd; expected at least one")
    methods = _with_own_names(_with_needed(contenders, reference))
    records = BenchJournal(journal)
    results: dict[tuple[str, str], Measurement | Failure] = {}
    for crowd in crowds:
        for method in methods:
            result: Measurement | Failure | None = records.find(method, crowd)
            if result is None:
                announce(crowd.name, method.name)
                result = measure(method, crowd)
                if isinstance(result, Measurement):
                    records.add(method, crowd, result)
            results[crowd.name, method.name] = result
    return Comparison(tuple(crowds), tuple(methods), results, reference)


def _with_own_names(contenders: Sequence[Contender]) -> list[Contender]:
    """The methods, each once; methods of the same name are named by their origins instead."""
    different = list({contender.origin: contender for contender in contenders}.values())
    counts = Counter(contender.name for contender in different)
    return [
        contender
        if counts[contender.name] == 1 or contender.origin.startswith("bayescrowd.")
        else contender._replace(name=contender.origin)
        for contender in different
    ]


def _with_needed(contenders: Sequence[Contender], reference: str) -> list[Contender]:
    """The vote first, then the methods, then the reference, unless they are listed."""
    # By their origins: a class of the user's own may be named as one of ours.
    listed = {contender.origin for contender in contenders}
    vote, last = exported_contender(BASELINE), exported_contender(reference)
    before = [] if vote.origin in listed else [vote]
    return [*before, *contenders, *([] if last.origin in listed else [last])]
