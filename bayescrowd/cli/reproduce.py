"""`bayescrowd reproduce`: rerun published tables and figures and compare the results."""

from __future__ import annotations

import argparse
from pathlib import Path

from bayescrowd.cli.arguments import Commands, positive_number

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "reproduce",
        help="rerun published tables and figures",
        description="Rerun a published table or figure on the real data, and report for each cell "
        "whether it matches.",
        epilog="NAME.csv, NAME.png and NAME.journal.jsonl are written to the folder. To resume an "
        "interrupted run, give the same command again.",
    )
    parser.add_argument(
        "name", metavar="NAME|list", help="table or figure to rerun; 'list' lists them all"
    )
    parser.add_argument(
        "--seeds", type=positive_number, metavar="N", help="number of seeds for the random parts"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder to write to; default: reproduce"
    )
    parser.add_argument(
        "--jobs",
        type=positive_number,
        metavar="N",
        help="number of processes; default: one per core",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--force", action="store_true", help="first delete the files of NAME in the folder"
    )
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    from bayescrowd.experiments.engine.command import DEFAULT_FOLDER, list_published, reproduce

    if args.name == "list":
        list_published(as_json=args.json)
    else:
        reproduce(
            args.name,
            n_seeds=args.seeds,
            folder=DEFAULT_FOLDER if args.out is None else args.out,
            n_jobs=args.jobs,
            as_json=args.json,
            force=args.force,
        )
    return 0
