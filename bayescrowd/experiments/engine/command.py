"""What `bayescrowd reproduce` does, apart from its arguments.

An experiment leaves three files in the output folder: `NAME.journal.jsonl`, its finished units;
`NAME.csv`, one row per cell; and `NAME.png`, the picture. Tables go to standard output, messages
about the run to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bayescrowd.experiments.engine.catalogue import CATALOGUE, PAPERS, experiment_named
from bayescrowd.experiments.engine.experiment import Experiment

if TYPE_CHECKING:
    from bayescrowd.experiments.engine.outcome import Outcome

__all__ = ["DEFAULT_FOLDER", "Files", "list_published", "reproduce", "run_in_folder"]

DEFAULT_FOLDER = Path("reproduce")


class Files(NamedTuple):
    """The files that an experiment leaves."""

    journal: Path
    """Finished units, one JSON object per line."""
    table: Path
    """One row per cell."""
    picture: Path
    """The picture, in the form of the paper's."""

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
                remark = f" ({particulars})" if particulars else ""
                print(f"  {entry.name:24}  {entry.kind:16}  {entry.place}: {entry.subject}{remark}")


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

    A run that was interrupted resumes where it stopped; with more seeds than before, only the new
    ones are run.

    Args:
        name: the experiment.
        n_seeds: how many seeds (0, 1, ...) to use for random parts; the experiment's default if
            None.
        folder: where the files go; created if it does not exist.
        n_jobs: number of processes; one per core if None.
        as_json: print JSON instead of a table.
        force: delete this experiment's files in the folder and start from scratch.

    Raises:
        ValueError: the name is unknown, a number is below 1, or the folder holds measurements made
            with other settings or by another version.
        OSError: files cannot be written, or the data cannot be loaded.
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
    """Do what `reproduce` does for a given experiment, and return the outcomes."""
    # Imported here so that listing the experiments stays quick.
    from bayescrowd.experiments.engine.journal import UnitJournal
    from bayescrowd.experiments.engine.results import as_frame, as_text, outcomes_of
    from bayescrowd.experiments.engine.results import as_json as json_of
    from bayescrowd.experiments.engine.runner import measure_missing
    from bayescrowd.io.writing import new_file, write_table

    files = _prepare(experiment.name, folder, force=force)
    try:
        journal = UnitJournal(files.journal, experiment)
    except ValueError as fault:
        raise ValueError(
            f"{fault}; --force deletes it and starts from scratch, --out names another folder"
        ) from None
    units = experiment.units(n_seeds)
    n_kept = sum(unit in journal.records for unit in units)
    if n_kept:
        _say(f"{n_kept} of {len(units)} units come from {files.journal} (--force reruns them)")
    try:
        measure_missing(experiment, journal, n_seeds=n_seeds, n_jobs=n_jobs)
    except BaseException:
        n_done = sum(unit in journal.records for unit in units)
        if n_done:
            done = f"{n_done} of {len(units)} units"
            _say(f"stopped after {done}; run the same command again to resume")
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
    """Create the folder, and make sure that no file of another origin would be overwritten."""
    folder.mkdir(parents=True, exist_ok=True)
    files = Files.of(name, folder)
    if force:
        for path in files:
            path.unlink(missing_ok=True)
    elif not files.journal.exists():
        for path in files:
            if path.exists():
                raise FileExistsError(
                    f"{path} exists, but there is no journal to resume; "
                    "--force replaces it, --out names another folder"
                )
    return files


def _n_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _say(text: str) -> None:
    print(text, file=sys.stderr)
