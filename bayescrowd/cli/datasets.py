"""`bayescrowd datasets`: list the public data sets and fetch their files."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import textwrap

from bayescrowd.cli.arguments import Commands
from bayescrowd.cli.text import align
from bayescrowd.data.text import did_you_mean

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "datasets",
        help="list or fetch public data sets",
        description="List the public data sets, or fetch their files.",
        epilog="Files are searched for in the folder that BAYESCROWD_DATA names, then in the cache "
        "(BAYESCROWD_CACHE); those found in neither are downloaded. SHA-256 sums are checked.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="print names and descriptions")
    listing.set_defaults(run=_list)
    fetching = actions.add_parser("fetch", help="download missing files and print the paths of all")
    fetching.add_argument(
        "names", nargs="*", metavar="NAME", help="name of a data set, as printed by 'list'"
    )
    fetching.add_argument("--all", action="store_true", help="fetch every data set")
    fetching.set_defaults(run=_fetch)
    for action in (listing, fetching):
        action.add_argument("--json", action="store_true", help="print JSON")


def _list(args: argparse.Namespace) -> int:
    from bayescrowd.datasets.registry import catalogue

    table = catalogue()
    if args.json:
        print(json.dumps(table.reset_index().to_dict("records"), indent=2, ensure_ascii=False))
        return 0
    rows = [["name", "kind", "here"]]
    rows += [[str(n), r["kind"], "yes" if r["local"] else "no"] for n, r in table.iterrows()]
    header, *lines = align(rows, left=(0, 1, 2), indent=0).splitlines()
    width = max(shutil.get_terminal_size().columns, 60) - 4
    print(header)
    for line, description in zip(lines, table["description"], strict=True):
        print(line)
        print(textwrap.indent(textwrap.fill(description, width), "    "))
    return 0


def _fetch(args: argparse.Namespace) -> int:
    from bayescrowd.datasets.registry import dataset_names, fetch

    if args.all == bool(args.names):
        raise ValueError("datasets fetch: expected either names of data sets or --all")
    unknown = [name for name in args.names if name not in dataset_names()]
    if unknown:
        raise ValueError(f"no data set {unknown[0]!r}; {did_you_mean(unknown[0], dataset_names())}")
    paths: dict[str, list[str]] = {}
    failures: list[str] = []
    for name in dataset_names() if args.all else args.names:
        try:
            paths[name] = [str(path) for path in fetch(name)]
        except (ValueError, OSError) as failure:  # the others may still succeed
            failures.append(str(failure))
            continue
        if not args.json:
            print(*paths[name], sep="\n")
    if args.json:
        print(json.dumps(paths, indent=2))
    for reason in failures:
        print(f"bayescrowd: {reason}", file=sys.stderr)
    return 2 if failures else 0
