"""What the commands that draw from posteriors share: models, options, files, words."""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayescrowd.cli.arguments import Parser, natural_number, positive_number
from bayescrowd.cli.text import counted

if TYPE_CHECKING:
    from bayescrowd.annotations import Annotations

__all__ = [
    "MODELS",
    "MODEL_LIST",
    "add_sampling_options",
    "check_outputs",
    "counts_of",
    "input_line",
    "known_model",
    "method_for",
    "model_name",
    "number_or_none",
    "shortened",
]

MODELS = {
    "dawid_skene": "a confusion matrix per worker",
    "hierarchical_dawid_skene": "the same, drawn from the crowd's: for few labels per worker",
    "ability_dawid_skene": "the same, drawn around each worker's ability",
    "worker_types": "the same, drawn from a few types of workers",
    "one_coin": "one accuracy per worker",
    "mace": "workers who know or spam",
    "item_difficulty": "worker ability and task difficulty (GLAD)",
}
"""Every model of crowd labels by name, with what it says in a few words."""

MODEL_LIST = "\n".join(f"  {name:<25} {summary}" for name, summary in MODELS.items())
"""The same, for a help text."""

PICTURES = (".png", ".pdf", ".svg")


def add_sampling_options(parser: Parser, *, draws: int) -> None:
    """Declare how many draws are made, and from which seed."""
    sampling = parser.add_argument_group("sampling")
    sampling.add_argument(
        "--chains", type=positive_number, metavar="N", default=4, help="(%(default)s)"
    )
    sampling.add_argument(
        "--draws", type=positive_number, metavar="N", default=draws, help="per chain (%(default)s)"
    )
    sampling.add_argument(
        "--warmup",
        type=natural_number,
        metavar="N",
        help="draws thrown away first; default: as the method needs",
    )
    sampling.add_argument(
        "--seed", type=natural_number, metavar="N", default=0, help="(%(default)s)"
    )


def model_name(text: str) -> str:
    """Argument type: the name of a model; hyphens will do for underscores."""
    name = text.replace("-", "_")
    if name not in MODELS:
        raise argparse.ArgumentTypeError(f"no model {text!r}; there are {', '.join(MODELS)}")
    return name


def known_model(name: str) -> Any:
    """The model's module."""
    from bayescrowd import models

    return getattr(models, name)


def method_for(model: str) -> Any:
    """Gibbs where the model has it, else NUTS."""
    from bayescrowd.posterior.gibbs import conjugate_models

    return "gibbs" if model in conjugate_models() else "nuts"


def check_outputs(
    *,
    inputs: list[str | None],
    tables: list[str | None],
    pictures: list[str | None],
    others: list[str | None],
    overwrite: bool,
) -> None:
    """Refuse files that cannot be written, or that are named twice."""
    from bayescrowd.writing import check_table_target, check_target

    outputs = [*tables, *pictures, *others]
    # realpath takes loops of links, which reading and writing then refuse by name
    files = [os.path.realpath(path) for path in (*inputs, *outputs) if path and path != "-"]
    for path in outputs:
        if path is None or (path == "-" and path in tables):
            continue
        if path in pictures and Path(path).suffix.lower() not in PICTURES:
            raise ValueError(f"{path}: expected a name that ends in {', '.join(PICTURES)}")
        if files.count(os.path.realpath(path)) > 1:
            raise ValueError(f"{path}: named twice; expected a file of its own for the output")
        check = check_table_target if path in tables else check_target
        try:
            check(path, overwrite=overwrite)
        except FileExistsError:
            raise FileExistsError(f"{path}: the file exists; --force overwrites it") from None


def counts_of(source: str, ann: Annotations) -> dict[str, Any]:
    """What was read, for machines."""
    return {
        "source": source,
        "n_labels": ann.n_labels,
        "n_tasks": ann.n_tasks,
        "n_workers": ann.n_workers,
        "n_classes": ann.n_classes,
        "n_dropped": ann.n_dropped,
    }


def number_or_none(value: float) -> float | None:
    """The number, or None where JSON has none: not a number, or infinite."""
    return float(value) if math.isfinite(value) else None


def input_line(source: str, ann: Annotations) -> str:
    """What was read, in one line."""
    return (
        f"{source}: {counted(ann.n_labels, 'label')} of {counted(ann.n_tasks, 'task')} by "
        f"{counted(ann.n_workers, 'worker')}, {counted(ann.n_classes, 'class', 'classes')}"
    )


def shortened(value: Any, most: int = 32) -> str:
    """A user's id in one line of limited length."""
    text = " ".join(str(value).split())
    return text if len(text) <= most else f"{text[: most - 3]}..."
