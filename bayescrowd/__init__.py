"""True labels, worker quality and the next question to ask, from noisy crowd labels.

Public names load on first use: importing the package reads no data and loads no numerical
library. A new name takes a line in ``_NAMES`` and its twin below ``TYPE_CHECKING``, the one for
Python and the other for type checkers; a test compares them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from bayescrowd._version import __version__ as __version__

if TYPE_CHECKING:
    from bayescrowd import datasets as datasets
    from bayescrowd import metrics as metrics
    from bayescrowd import models as models
    from bayescrowd import plots as plots
    from bayescrowd import simulate as simulate
    from bayescrowd.aggregation.auto import AutoAggregator as AutoAggregator
    from bayescrowd.aggregation.auto import aggregate as aggregate
    from bayescrowd.aggregation.dawid_skene import DawidSkene as DawidSkene
    from bayescrowd.aggregation.empirical_bayes import (
        EmpiricalBayesDawidSkene as EmpiricalBayesDawidSkene,
    )
    from bayescrowd.aggregation.glad import GLAD as GLAD
    from bayescrowd.aggregation.kos import KOS as KOS
    from bayescrowd.aggregation.mace import MACE as MACE
    from bayescrowd.aggregation.majority import MajorityVote as MajorityVote
    from bayescrowd.aggregation.majority import Wawa as Wawa
    from bayescrowd.aggregation.mmsr import MMSR as MMSR
    from bayescrowd.aggregation.one_coin import OneCoinDawidSkene as OneCoinDawidSkene
    from bayescrowd.aggregation.singular_vectors import EigenRatio as EigenRatio
    from bayescrowd.aggregation.singular_vectors import GhoshSVD as GhoshSVD
    from bayescrowd.aggregation.spectral import SpectralDawidSkene as SpectralDawidSkene
    from bayescrowd.aggregation.worker_types import WorkerTypes as WorkerTypes
    from bayescrowd.aggregation.zero_based_skill import ZeroBasedSkill as ZeroBasedSkill
    from bayescrowd.annotations import Annotations as Annotations
    from bayescrowd.budgeted.bleafs import BLeafs as BLeafs
    from bayescrowd.budgeted.curve import budget_curve as budget_curve
    from bayescrowd.budgeted.lookahead import BudgetedSelection as BudgetedSelection
    from bayescrowd.budgeted.planning import plan_budget as plan_budget
    from bayescrowd.budgeted.rivals import BiasedRobin as BiasedRobin
    from bayescrowd.budgeted.rivals import ExploreThenCommit as ExploreThenCommit
    from bayescrowd.budgeted.rivals import PosteriorMeanGreedy as PosteriorMeanGreedy
    from bayescrowd.budgeted.rivals import RoundRobin as RoundRobin
    from bayescrowd.budgeted.rivals import TsGreedy as TsGreedy
    from bayescrowd.budgeted.simulation import simulate_budget as simulate_budget
    from bayescrowd.budgeted.space import FeatureSpace as FeatureSpace
    from bayescrowd.datasets import Dataset as Dataset
    from bayescrowd.datasets import TableDataset as TableDataset
    from bayescrowd.datasets import load_dataset as load_dataset
    from bayescrowd.datasets import load_table as load_table
    from bayescrowd.information import pairwise_mutual_information as pairwise_mutual_information
    from bayescrowd.mixture.mdpd import MDPD as MDPD
    from bayescrowd.mixture.stages import ExpensiveFitWarning as ExpensiveFitWarning
    from bayescrowd.mixture.stagewise import StagewiseEM as StagewiseEM
    from bayescrowd.mixture.vote_start import WorseThanVotesWarning as WorseThanVotesWarning
    from bayescrowd.posterior.diagnostics import compare as compare
    from bayescrowd.posterior.diagnostics import diagnose as diagnose
    from bayescrowd.posterior.sample import label_posterior as label_posterior
    from bayescrowd.posterior.sample import sample_posterior as sample_posterior
    from bayescrowd.posterior.workers import worker_posterior as worker_posterior
    from bayescrowd.reading import read_annotations as read_annotations
    from bayescrowd.reading import read_truth as read_truth
    from bayescrowd.selection.averages import Averages as Averages
    from bayescrowd.selection.averages import Copies as Copies
    from bayescrowd.selection.multi_selection import MultiSelection as MultiSelection
    from bayescrowd.selection.multi_selection import (
        MultiSelectionClassifier as MultiSelectionClassifier,
    )
    from bayescrowd.selection.repeat_selector import (
        InfeasibleProjectionWarning as InfeasibleProjectionWarning,
    )
    from bayescrowd.selection.selective import SelectiveDawidSkene as SelectiveDawidSkene
    from bayescrowd.selection.workers import (
        MutualInformationSelector as MutualInformationSelector,
    )
    from bayescrowd.selection.workers import selection_curve as selection_curve
    from bayescrowd.truth import TruthWarning as TruthWarning

_SUBMODULES = ("datasets", "metrics", "models", "plots", "simulate")

_NAMES = {
    "Annotations": "bayescrowd.annotations",
    "AutoAggregator": "bayescrowd.aggregation.auto",
    "Averages": "bayescrowd.selection.averages",
    "BLeafs": "bayescrowd.budgeted.bleafs",
    "BiasedRobin": "bayescrowd.budgeted.rivals",
    "BudgetedSelection": "bayescrowd.budgeted.lookahead",
    "Copies": "bayescrowd.selection.averages",
    "Dataset": "bayescrowd.datasets",
    "DawidSkene": "bayescrowd.aggregation.dawid_skene",
    "EigenRatio": "bayescrowd.aggregation.singular_vectors",
    "EmpiricalBayesDawidSkene": "bayescrowd.aggregation.empirical_bayes",
    "ExpensiveFitWarning": "bayescrowd.mixture.stages",
    "ExploreThenCommit": "bayescrowd.budgeted.rivals",
    "FeatureSpace": "bayescrowd.budgeted.space",
    "GLAD": "bayescrowd.aggregation.glad",
    "GhoshSVD": "bayescrowd.aggregation.singular_vectors",
    "InfeasibleProjectionWarning": "bayescrowd.selection.repeat_selector",
    "KOS": "bayescrowd.aggregation.kos",
    "MACE": "bayescrowd.aggregation.mace",
    "MDPD": "bayescrowd.mixture.mdpd",
    "MMSR": "bayescrowd.aggregation.mmsr",
    "MajorityVote": "bayescrowd.aggregation.majority",
    "MultiSelection": "bayescrowd.selection.multi_selection",
    "MultiSelectionClassifier": "bayescrowd.selection.multi_selection",
    "MutualInformationSelector": "bayescrowd.selection.workers",
    "OneCoinDawidSkene": "bayescrowd.aggregation.one_coin",
    "PosteriorMeanGreedy": "bayescrowd.budgeted.rivals",
    "RoundRobin": "bayescrowd.budgeted.rivals",
    "SelectiveDawidSkene": "bayescrowd.selection.selective",
    "SpectralDawidSkene": "bayescrowd.aggregation.spectral",
    "StagewiseEM": "bayescrowd.mixture.stagewise",
    "TableDataset": "bayescrowd.datasets",
    "TruthWarning": "bayescrowd.truth",
    "TsGreedy": "bayescrowd.budgeted.rivals",
    "Wawa": "bayescrowd.aggregation.majority",
    "WorkerTypes": "bayescrowd.aggregation.worker_types",
    "WorseThanVotesWarning": "bayescrowd.mixture.vote_start",
    "ZeroBasedSkill": "bayescrowd.aggregation.zero_based_skill",
    "aggregate": "bayescrowd.aggregation.auto",
    "budget_curve": "bayescrowd.budgeted.curve",
    "compare": "bayescrowd.posterior.diagnostics",
    "diagnose": "bayescrowd.posterior.diagnostics",
    "label_posterior": "bayescrowd.posterior.sample",
    "load_dataset": "bayescrowd.datasets",
    "load_table": "bayescrowd.datasets",
    "pairwise_mutual_information": "bayescrowd.information",
    "plan_budget": "bayescrowd.budgeted.planning",
    "read_annotations": "bayescrowd.reading",
    "read_truth": "bayescrowd.reading",
    "sample_posterior": "bayescrowd.posterior.sample",
    "selection_curve": "bayescrowd.selection.workers",
    "simulate_budget": "bayescrowd.budgeted.simulation",
    "worker_posterior": "bayescrowd.posterior.workers",
}

__all__ = ["__version__", *_SUBMODULES, *_NAMES]


if not TYPE_CHECKING:  # type checkers would take it to mean that every name exists

    def __getattr__(name: str) -> object:
        """Load a public name on first use (PEP 562)."""
        if name in _SUBMODULES:
            return import_module(f"{__name__}.{name}")
        if name not in _NAMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_NAMES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
