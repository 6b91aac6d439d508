"""What commands read: a file or a data set by its name, and what there is to say about it."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from bayescrowd.data.text import closest_name

if TYPE_CHECKING:
    from bayescrowd.data.annotations import Annotations
    from bayescrowd.io.column_names import ExportedLabels
    from bayescrowd.io.reading import KnownLabels

__all__ = ["data_sets", "read_input", "read_known", "say", "use_own_truth"]

COLUMN_OPTIONS = ("format", "task", "worker", "label", "columns")
"""Options about the columns of a file, which a data set does not have."""


def read_input(path: str, args: argparse.Namespace) -> tuple[str, ExportedLabels]:
    """The name in messages and the judgements of a file, or of a data set that is named.

    Args:
        path: what the user typed: a file, '-' or the name of a data set.
        args: the reading options.

    Raises:
        FileNotFoundError: there is neither such a file nor such a data set.
        ValueError: the file cannot be read, or an option is about columns of a data set.
    """
    from bayescrowd.io.column_names import ExportedLabels
    from bayescrowd.io.formats import Columns, read_rows

    if not _is_data_set(path):
        names = None if args.columns is None else tuple(args.columns)
        columns = Columns(args.task, args.worker, args.label, names)
        source, rows = read_rows(path, args.format, columns, raw_cells=args.raw_cells)
        return source, rows._replace(notes=(*_hidden_data_set(path), *rows.notes))
    for option in COLUMN_OPTIONS:
        if getattr(args, option) is not None:
            raise ValueError(
                f"--{option} is about the columns of a file, but {path} is a data set by name"
            )
    from bayescrowd.datasets.registry import load_dataset

    frame = load_dataset(path).annotations.to_frame()
    return path, ExportedLabels(frame, "task", "worker", "label", _row_number)


def read_known(args: argparse.Namespace, name: str, annotations: Annotations) -> KnownLabels | None:
    """The labels of `--gold` or `--truth`, matched with the annotations; None without the option.

    Args:
        args: options of the command, with `--NAME`, `--NAME-columns` and the reading options.
        name: 'gold' or 'truth'.
        annotations: judgements with the tasks and classes to match.
    """
    from bayescrowd.io.column_names import ExportedLabels
    from bayescrowd.io.reading import match_known_labels, read_known_labels

    path = getattr(args, name)
    if path is None:
        return None
    task, label = getattr(args, f"{name}_columns")
    if _is_data_set(path):
        from bayescrowd.datasets.registry import load_dataset

        if (truth := load_dataset(path).truth) is None:
            raise ValueError(f"--{name} {path}: no truth is known for this data set")
        frame = truth.rename_axis("task").rename("truth").reset_index()
        rows = ExportedLabels(frame, "task", "", "truth", _row_number)
        found = match_known_labels(path, rows, annotations, name=name, tidy=args.tidy)
    else:
        found = read_known_labels(
            path,
            annotations,
            task=task,
            label=label,
            name=name,
            raw_cells=args.raw_cells,
            columns=None if args.columns is None else (task or "task", label or name),
            tidy=args.tidy,
        )
    say(found.notes)
    return found


def use_own_truth(args: argparse.Namespace) -> None:
    """Score against the truth of a data set that is read by name, unless `--truth` names another.

    `args.truth` becomes the name of the data set. If its truth is given as gold, nothing is left to
    score.
    """
    is_gold = getattr(args, "gold", None) == args.labels
    if args.truth is None and not is_gold and _is_data_set(args.labels):
        from bayescrowd.datasets.registry import has_truth

        if has_truth(args.labels):
            args.truth = args.labels


def data_sets(text: str) -> list[str]:
    """The data sets of labels that the text names with commas between them; none if it is a path.

    Raises:
        FileNotFoundError: there is no such file or folder, and a name resembles that of a data set.
    """
    names = [name.strip() for name in text.split(",")]
    return names if not os.path.lexists(text) and all(map(_is_data_set, names)) else []


def say(notes: tuple[str, ...]) -> None:
    """Print what was guessed or changed on reading, a line each, to standard error."""
    for note in notes:
        print(f"bayescrowd: {note}", file=sys.stderr)


def _is_data_set(path: str) -> bool:
    """Whether the path is the name of a data set of labels and not that of a file.

    A folder of this name is no file that could be read instead.

    Raises:
        FileNotFoundError: there is no such file, and the name resembles that of a data set.
    """
    if path == "-" or os.path.splitext(path)[1] or os.sep in path or _is_file(path):
        return False
    from bayescrowd.datasets.registry import crowd_names

    if path in crowd_names():
        return True
    close = closest_name(path, crowd_names())
    if close is not None and not os.path.lexists(path):
        raise FileNotFoundError(f"{path}: there is no such file; did you mean {close}, a data set?")
    return False


def _row_number(position: int) -> int:
    return position + 1


def _is_file(path: str) -> bool:
    return os.path.lexists(path) and not os.path.isdir(path)


def _hidden_data_set(path: str) -> tuple[str, ...]:
    """A sentence if a file hides the data set of the same name."""
    if path == "-" or os.path.splitext(path)[1] or not _is_file(path):
        return ()
    from bayescrowd.datasets.registry import crowd_names

    if path not in crowd_names():
        return ()
    return (f"{path}: read the file of this name, not the data set {path}",)
