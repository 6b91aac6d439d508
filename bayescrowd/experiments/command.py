"""What `bayescrowd reproduce` does, apart from its arguments.

An experiment leaves three files in the output folder: `NAME.journal.jsonl`, its finished units;
`NAME.csv`, one row per cell; and `NAME.png`, the picture. Tables go to standard output, and what
is said about the run to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bayescrowd.experiments.catalogue import CATALOGUE, PAPERS, experiment_named
from bayescrowd.experiments.experiment import Experiment

if TYPE_CHECKING:
    from bayescrowd.experiments.outcome import Outcome

__all__ = ["DEFAULT_FOLDER", "Files", "list_published", "reproduce", "run_in_folder"]

DEFAULT_FOLDER = Path("reproduce")


class Files(NamedTuple):
    """What an experiment leaves."""

    journal: Path
    """Finished units, one JSON object per line."""
    table: Path
    """One row per cell."""
    picture: Path
    """In the form of the paper."""

    @classmethod
    def of(cls, name: str, folder: Path) -> Files:
        """The files of an experiment in a folder."""
        return cls(*(folder / f"{name}{end}" for end in (".journal.jsonl", ".csv", ".png")))


def list_published(*, as_json: bool = False) -> None:
    """Print every published table and figure with its status."""
    entries = CATALOGUE.values()
    if as_json:
        rows = [
            {
                "name": entry.name,
                "paper": PAPERS[entry.paper],
                "place": entry.place,
                "subject": entry.subject,
                "status": entry.status,
            }
            for entry in entries
        ]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    for paper, title in PAPERS.items():
        print(title)
        for entry in entries:
            if entry.paper == paper:
                particulars = entry.reason or entry.remark
                told = f" ({particulars})" if particulars else ""
                print(f"  {entry.name:24}  {entry.kind:16}  {entry.place}: {entry.subject}{told}")


def reproduce(
    name: str,
    *,
    n_seeds: int | None = None,
    folder: Path = DEFAULT_FOLDER,
    n_jobs: int | None = None,
    as_json: bool = False,
    force: bool = False,
) -> None:
    """Rerun a published table or figure, print it beside the published one, and write its files.

    A run that was interrupted goes on where it stopped; with more seeds than before, only the
    new ones are run.

    Args:
        name: of the experiment.
        n_seeds: seeds 0, 1, ... of what is random; the experiment's own number if None.
        folder: where the files go; made if it is not there.
        n_jobs: processes; one per core if None.
        as_json: print JSON instead of a table.
        force: throw away what the folder has of this experiment, and start anew.

    Raises:
        ValueError: the name is unknown, a number is below 1, or the folder has measurements of
            other settings or of another version.
        OSError: files cannot be written, or the data cannot be had.
    """
    experiment = experiment_named(name)
    n_seeds = experiment.n_seeds if n_seeds is None else n_seeds
    n_jobs = _n_cores() if n_jobs is None else n_jobs
    if n_seeds < 1 or n_jobs < 1:
        raise ValueError(f"seeds={n_seeds}, jobs={n_jobs}: expected at least 1 of each")
    run_in_folder(experiment, folder, n_seeds=n_seeds, n_jobs=n_jobs, as_json=as_json, force=force)
    if not as_json:
        files = Files.of(name, folder)
        _say(f"written: {files.table}, {files.picture}")


def run_in_folder(
    experiment: Experiment,
    folder: Path,
    *,
    n_seeds: int,
    n_jobs: int,
    as_json: bool = False,
    force: bool = False,
) -> list[Outcome]:
    """`reproduce` for an experiment at hand; returns what it prints."""
    # Imported here, so that listing what there is stays quick.
    from bayescrowd.experiments.journal import Journal
    from bayescrowd.experiments.outcome import as_frame, as_text, outcomes_of
    from bayescrowd.experiments.outcome import as_json as json_of
    from bayescrowd.experiments.runner import measure_missing
    from bayescrowd.writing import new_file, write_table

    files = _prepare(experiment.name, folder, force=force)
    try:
        journal = Journal(files.journal, experiment)
    except ValueError as fault:
        raise ValueError(
            f"{fault}: --force throws it away and starts anew, --out names another folder"
        ) from None
    units = experiment.units(n_seeds)
    with journal:
        n_kept = sum(unit in journal.records for unit in units)
        if n_kept:
            _say(f"{n_kept} of {len(units)} units come from {files.journal} (--force reruns them)")
        try:
            measure_missing(experiment, journal, n_seeds=n_seeds, n_jobs=n_jobs)
        except BaseException:
            n_done = sum(unit in journal.records for unit in units)
            if n_done:
                done = f"{n_done} of {len(units)} units"
                _say(f"stopped after {done}: the same command goes on there")
            raise
    outcomes = outcomes_of(experiment, journal.records, n_seeds)
    write_table(as_frame(experiment, outcomes), files.table, overwrite=True)
    with new_file(files.picture, overwrite=True) as file:
        experiment.draw(outcomes).savefig(file, format="png")
    if as_json:
        paths = {kind: str(path) for kind, path in files._asdict().items()}
        print(json_of(experiment, outcomes, paths))
    else:
        print(as_text(experiment, outcomes))
    return outcomes


def _prepare(name: str, folder: Path, *, force: bool) -> Files:
    """Make the folder, and see that nothing of another origin would be overwritten."""
    folder.mkdir(parents=True, exist_ok=True)
    files = Files.of(name, folder)
    if force:
        for path in files:
            path.unlink(missing_ok=True)
    elif not files.journal.exists():
        for path in files:
            if path.exists():
                raise FileExistsError(
                    f"{path} exists, and there is no journal to resume: "
                    "--force replaces it, --out names another folder"
                )
    return files


def _n_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _say(text: str) -> None:
    print(text, file=sys.stderr)
