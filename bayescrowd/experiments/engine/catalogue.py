"""Every published table and figure of the five papers, and whether it can be rerun here.

This is the only list of experiments. Reading it imports no numerical library; the module of an
experiment is imported when the experiment is run.
"""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from bayescrowd.data.text import did_you_mean
from bayescrowd.experiments.engine.experiment import Experiment

__all__ = ["CATALOGUE", "PAPERS", "Published", "experiment_named"]

PAPERS = {
    "spectral": "Zhang, Chen, Zhou, Jordan 2014: Spectral methods meet EM (review: Collins 2019)",
    "mi": "Zhao, Zucker: Feature selection facilitates learning mixtures of discrete products",
    "stagewise": "Zhao, Zucker: Stagewise learning for sparse clustering of discrete data",
    "bleafs": "Nushi, Singla, Krause, Kossmann 2016: Learning and feature selection under budget",
    "multiselection": "Sabato, Kalai 2013: Feature multi-selection among subjective features",
    "bayescrowd": "This package",
}

_ILLUSTRATION = "an illustration; nothing is measured"


class Published(NamedTuple):
    """One table or figure."""

    name: str
    """Its name on the command line."""
    paper: str
    """Key of `PAPERS`."""
    place: str
    """Its number in the paper, such as 'Table 1'."""
    subject: str
    """What it shows."""
    module: str | None = None
    """The module that defines its `EXPERIMENT`; None if there is none."""
    reason: str | None = None
    """Why it cannot be rerun; None if it can."""
    remark: str | None = None
    """How the rerun differs from what was published; None if it does not."""

    @property
    def kind(self) -> str:
        """'available', 'not yet' or 'not reproducible'."""
        if self.reason is not None:
            return "not reproducible"
        return "not yet" if self.module is None else "available"

    @property
    def status(self) -> str:
        """The kind, followed by a colon and the reason or remark if there is one."""
        particulars = self.reason or self.remark
        return self.kind if particulars is None else f"{self.kind}: {particulars}"


_HOME = "bayescrowd.experiments"
_ENTRIES = [
    Published(
        "spectral-table1",
        "spectral",
        "Table 1",
        "label error of six methods on five crowds",
        module=f"{_HOME}.spectral.table1",
    ),
    Published(
        "spectral-clip",
        "spectral",
        "Section 6",
        "label error against the threshold on the spectral estimates",
        module=f"{_HOME}.spectral.clip",
    ),
    Published(
        "mi-figure1",
        "mi",
        "Figure 1",
        "agreement of two one-coin workers",
        module=f"{_HOME}.mi.figure1",
    ),
    Published(
        "mi-figure2",
        "mi",
        "Figure 2",
        "goodness of fit as a bound on the divergence",
        module=f"{_HOME}.mi.figure2",
    ),
    Published(
        "mi-table1",
        "mi",
        "Table 1",
        "sizes of the five crowds",
        module=f"{_HOME}.mi.table1",
    ),
    Published(
        "mi-table2",
        "mi",
        "Table 2",
        "label error with and without selection of workers",
        module=f"{_HOME}.mi.table2",
    ),
    Published(
        "mi-figure3",
        "mi",
        "Figure 3",
        "label error against the number of workers",
        module=f"{_HOME}.mi.figure3",
    ),
    Published(
        "stagewise-figure1",
        "stagewise",
        "Figure 1",
        "orientation classes of neurons",
        module=f"{_HOME}.stagewise.figure1",
        remark="on simulated neurons: the recording is not public",
    ),
    Published(
        "stagewise-figure2",
        "stagewise",
        "Figure 2",
        "the bound that EM maximises",
        reason=_ILLUSTRATION,
    ),
    Published(
        "stagewise-figure3",
        "stagewise",
        "Figure 3",
        "progress of stagewise EM",
        module=f"{_HOME}.stagewise.figure3",
    ),
    Published(
        "stagewise-figure4",
        "stagewise",
        "Figure 4",
        "growth of the informative set",
        module=f"{_HOME}.stagewise.figure4",
    ),
    Published(
        "stagewise-figure5",
        "stagewise",
        "Figure 5",
        "label error on sparse crowds",
        module=f"{_HOME}.stagewise.figure5",
    ),
    Published(
        "stagewise-table1",
        "stagewise",
        "Table 1",
        "label error on two crowds",
        module=f"{_HOME}.stagewise.table1",
    ),
    Published(
        "bleafs-figure1",
        "bleafs",
        "Figure 1",
        "a prediction from features that a crowd labels",
        reason=_ILLUSTRATION,
    ),
    Published(
        "bleafs-figure2", "bleafs", "Figure 2", "the naive Bayes model", reason=_ILLUSTRATION
    ),
    Published(
        "bleafs-figure3", "bleafs", "Figure 3", "the access-path model", reason=_ILLUSTRATION
    ),
    Published(
        "bleafs-figure4",
        "bleafs",
        "Figure 4",
        "credibility of two beta distributions",
        module=f"{_HOME}.bleafs.figure4",
    ),
    Published(
        "bleafs-table1",
        "bleafs",
        "Table 1",
        "a run of B-LEAFS on nursery",
        module=f"{_HOME}.bleafs.table1",
    ),
    Published(
        "bleafs-table2",
        "bleafs",
        "Table 2",
        "a run of all policies on breast-cancer",
        module=f"{_HOME}.bleafs.table2",
    ),
    Published(
        "bleafs-figure5",
        "bleafs",
        "Figure 5",
        "error against budget, naive Bayes",
        module=f"{_HOME}.bleafs.figure5",
    ),
    Published(
        "bleafs-figure6",
        "bleafs",
        "Figure 6",
        "error against budget, access path",
        module=f"{_HOME}.bleafs.figure6",
        remark="6b and 6c are simulated where the workers' labels of CUB-200 are not available",
    ),
    Published(
        "bleafs-figure7",
        "bleafs",
        "Figure 7",
        "error against noise",
        module=f"{_HOME}.bleafs.figure7",
    ),
    Published(
        "multiselection-figures12",
        "multiselection",
        "Figures 1 and 2",
        "correlation against reliability of attributes",
        module=f"{_HOME}.multiselection.figures12",
        remark="on a simulated crowd: the judgements are not public",
    ),
    Published(
        "multiselection-figure3",
        "multiselection",
        "Figure 3",
        "test error against budget, CT slices",
        module=f"{_HOME}.multiselection.figure3",
        remark="on the first 682 rows or a simulated stand-in where the full table is missing",
    ),
    Published(
        "multiselection-figure4",
        "multiselection",
        "Figure 4",
        "test error against budget, height and weight",
        module=f"{_HOME}.multiselection.figure4",
        remark="on a simulated crowd: the judgements are not public",
    ),
    Published(
        "methods",
        "bayescrowd",
        "README",
        "label error and seconds of every method on the five crowds",
        module=f"{_HOME}.methods",
    ),
    Published(
        "posterior-calibration",
        "bayescrowd",
        "Calibration",
        "whether label probabilities are right: EM and Gibbs sampling on rte, trec and dog",
        module=f"{_HOME}.posterior_calibration",
    ),
]

CATALOGUE = {entry.name: entry for entry in _ENTRIES}
"""All entries by name, grouped by paper."""


def experiment_named(name: str) -> Experiment:
    """The experiment with the given name.

    Raises:
        ValueError: the name is unknown, and the message lists those that exist; or it cannot be
            rerun, and the message says why.

    Examples:
        >>> experiment_named("stagewise-figure2")
        Traceback (most recent call last):
            ...
        ValueError: stagewise-figure2 is not reproducible: an illustration; nothing is measured
    """
    entry = CATALOGUE.get(name)
    if entry is None:
        available = [entry.name for entry in CATALOGUE.values() if entry.module is not None]
        raise ValueError(f"unknown experiment {name!r}; {did_you_mean(name, available)}")
    if entry.module is None:
        status = f"is {entry.status}" if entry.reason is not None else "cannot be rerun yet"
        raise ValueError(f"{name} {status}")
    experiment = import_module(entry.module).EXPERIMENT
    if not isinstance(experiment, Experiment):
        kind = type(experiment).__name__
        raise TypeError(f"{entry.module}.EXPERIMENT: expected an Experiment, got a {kind}")
    return experiment
