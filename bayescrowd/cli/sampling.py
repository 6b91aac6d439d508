"""What the commands that draw from posteriors share: models, options and phrases."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bayescrowd.cli.arguments import Parser, natural_number, positive_number
from bayescrowd.cli.names import known_name
from bayescrowd.data.text import quantity

if TYPE_CHECKING:
    from bayescrowd.data.annotations import Annotations
    from bayescrowd.models import Outline

__all__ = [
    "add_sampling_options",
    "counts_of",
    "input_line",
    "model_list",
    "model_name",
    "models_of_labels",
    "modes_of",
    "number_or_none",
]


def add_sampling_options(parser: Parser, *, draws: int) -> None:
    """Declare the numbers of chains and draws, and the seed."""
    sampling = parser.add_argument_group("sampling")
    sampling.add_argument(
        "--chains",
        type=positive_number,
        metavar="N",
        default=4,
        help="number of chains; default: %(default)s",
    )
    sampling.add_argument(
        "--draws",
        type=positive_number,
        metavar="N",
        default=draws,
        help="number of draws per chain to keep; default: %(default)s",
    )
    sampling.add_argument(
        "--most-draws",
        type=positive_number,
        metavar="N",
        help="stop after N draws per chain even if chains disagree; the same number as for --draws "
        "makes exactly that many; default: go on for as long as is reasonable",
    )
    sampling.add_argument(
        "--warmup",
        type=natural_number,
        metavar="N",
        help="number of draws per chain to discard first; default: what the method needs",
    )
    sampling.add_argument(
        "--seed",
        type=natural_number,
        metavar="N",
        default=0,
        help="seed of all random choices; default: %(default)s",
    )


def modes_of(post: Any) -> list[dict[str, Any]]:
    """Weight, log evidence with its error and chains of each mode; empty if there is only one."""
    from bayescrowd.posterior.container import group_names, group_of

    if "modes" not in group_names(post):
        return []
    modes = group_of(post, "modes")
    of_chain = modes["mode_of_chain"].to_numpy().tolist()
    return [
        {
            **{
                name: float(modes[name][mode])
                for name in ("weight", "log_evidence", "log_evidence_error")
            },
            "chains": [chain for chain, own in enumerate(of_chain) if own == mode],
        }
        for mode in range(modes.sizes["mode"])
    ]


def models_of_labels() -> dict[str, Outline]:
    """Every model of crowd labels by name, with the facts that it states about itself."""
    from bayescrowd import models

    return models.catalogue("labels")


def model_list() -> str:
    """The models of crowd labels, one per line, for a help text."""
    return "\n".join(f"  {name:<25} {facts.summary}" for name, facts in models_of_labels().items())


def model_name(text: str) -> str:
    """Argument type: the name of a model, in any spelling."""
    return known_name(text, {name: name for name in models_of_labels()}, "model")


def counts_of(source: str, ann: Annotations) -> dict[str, Any]:
    """Counts of the labels that were read, for JSON."""
    return {
        "source": source,
        "n_labels": ann.n_labels,
        "n_tasks": ann.n_tasks,
        "n_workers": ann.n_workers,
        "n_classes": ann.n_classes,
        "n_dropped": ann.n_dropped,
    }


def number_or_none(value: float) -> float | None:
    """The number, or None if it is infinite or not a number, which JSON cannot express."""
    return float(value) if math.isfinite(value) else None


def input_line(source: str, ann: Annotations) -> str:
    """Counts of the labels that were read, in one line."""
    return (
        f"{source}: {quantity(ann.n_labels, 'label')} of {quantity(ann.n_tasks, 'task')} by "
        f"{quantity(ann.n_workers, 'worker')}, {quantity(ann.n_classes, 'class', 'classes')}"
    )
