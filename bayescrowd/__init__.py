"""True labels, worker quality and the next question to ask, from noisy crowd labels.

Public names load on first use: importing the package reads no data and loads no numerical
library. A new name needs a line in ``_NAMES``, for Python, and one below ``TYPE_CHECKING``, for
type checkers; a test compares the two.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from bayescrowd._version import __version__ as __version__

if TYPE_CHECKING:
    from bayescrowd import agreement as agreement
    from bayescrowd import crowdkit as crowdkit
    from bayescrowd import datasets as datasets
    from bayescrowd import metrics as metrics
    from bayescrowd import models as models
    from bayescrowd import plots as plots
    from bayescrowd import simulate as simulate
    from bayescrowd.aggregation.auto.aggregator import AutoAggregator as AutoAggregator
    from bayescrowd.aggregation.auto.aggregator import aggregate as aggregate
    from bayescrowd.aggregation.bwa import BWA as BWA
    from bayescrowd.aggregation.dawid_skene import DawidSkene as DawidSkene
    from bayescrowd.aggregation.ebcc import EBCC as EBCC
    from bayescrowd.aggregation.glad import GLAD as GLAD
    from bayescrowd.aggregation.ibcc import IBCC as IBCC
    from bayescrowd.aggregation.kos import KOS as KOS
    from bayescrowd.aggregation.mace import MACE as MACE
    from bayescrowd.aggregation.majority import MajorityVote as MajorityVote
    from bayescrowd.aggregation.majority import Wawa as Wawa
    from bayescrowd.aggregation.mmsr import MMSR as MMSR
    from bayescrowd.aggregation.one_coin import OneCoinDawidSkene as OneCoinDawidSkene
    from bayescrowd.aggregation.shrunken.empirical_bayes import (
        EmpiricalBayesDawidSkene as EmpiricalBayesDawidSkene,
    )
    from bayescrowd.aggregation.shrunken.worker_types import WorkerTypes as WorkerTypes
    from bayescrowd.aggregation.singular_vectors import EigenRatio as EigenRatio
    from bayescrowd.aggregation.singular_vectors import GhoshSVD as GhoshSVD
    from bayescrowd.aggregation.spectral.estimator import SpectralDawidSkene as SpectralDawidSkene
    from bayescrowd.aggregation.zero_based_skill import ZeroBasedSkill as ZeroBasedSkill
    from bayescrowd.budgeted.beliefs.model_sampler import ModelSampler as ModelSampler
    from bayescrowd.budgeted.evaluation.curve import budget_curve as budget_curve
    from bayescrowd.budgeted.evaluation.curve_tables import curve_means as curve_means
    from bayescrowd.budgeted.evaluation.curve_tables import paired_differences as paired_differences
    from bayescrowd.budgeted.evaluation.planning import plan_budget as plan_budget
    from bayescrowd.budgeted.evaluation.simulation import simulate_budget as simulate_budget
    from bayescrowd.budgeted.policies.baselines import BiasedRobin as BiasedRobin
    from bayescrowd.budgeted.policies.baselines import ExploreThenCommit as ExploreThenCommit
    from bayescrowd.budgeted.policies.baselines import PosteriorMeanGreedy as PosteriorMeanGreedy
    from bayescrowd.budgeted.policies.baselines import RoundRobin as RoundRobin
    from bayescrowd.budgeted.policies.baselines import TsGreedy as TsGreedy
    from bayescrowd.budgeted.policies.bleafs import BLeafs as BLeafs
    from bayescrowd.budgeted.policies.lookahead import BudgetedSelection as BudgetedSelection
    from bayescrowd.budgeted.space import FeatureSpace as FeatureSpace
    from bayescrowd.data.annotations import Annotations as Annotations
    from bayescrowd.data.dataset import Dataset as Dataset
    from bayescrowd.data.table_dataset import TableDataset as TableDataset
    from bayescrowd.data.truth import TruthWarning as TruthWarning
    from bayescrowd.datasets.registry import load_dataset as load_dataset
    from bayescrowd.datasets.registry import load_table as load_table
    from bayescrowd.gold.prevalence import prevalence as prevalence
    from bayescrowd.gold.suggestions import suggest_gold as suggest_gold
    from bayescrowd.information import pairwise_mutual_information as pairwise_mutual_information
    from bayescrowd.io.reading import read_annotations as read_annotations
    from bayescrowd.io.reading import read_truth as read_truth
    from bayescrowd.io.spellings import SpellingWarning as SpellingWarning
    from bayescrowd.io.verdicts import read_verdicts as read_verdicts
    from bayescrowd.mixture.mdpd import MDPD as MDPD
    from bayescrowd.mixture.stagewise import ExpensiveFitWarning as ExpensiveFitWarning
    from bayescrowd.mixture.stagewise_estimator import StagewiseEM as StagewiseEM
    from bayescrowd.mixture.vote_start import WorseThanVotesWarning as WorseThanVotesWarning
    from bayescrowd.panel.report import panel_report as panel_report
    from bayescrowd.posterior.checks import check_crowd as check_crowd
    from bayescrowd.posterior.container import group_names as group_names
    from bayescrowd.posterior.diagnostics import compare as compare
    from bayescrowd.posterior.diagnostics import diagnose as diagnose
    from bayescrowd.posterior.leave_one_out import loo_pit as loo_pit
    from bayescrowd.posterior.leave_one_out import loo_pit_data as loo_pit_data
    from bayescrowd.posterior.sample import label_posterior as label_posterior
    from bayescrowd.posterior.sample import sample_posterior as sample_posterior
    from bayescrowd.posterior.workers import worker_posterior as worker_posterior
    from bayescrowd.reports.page import report as report
    from bayescrowd.saved_fits.loading import load as load
    from bayescrowd.selection.repeats.averages import Averages as Averages
    from bayescrowd.selection.repeats.averages import Copies as Copies
    from bayescrowd.selection.repeats.multi_selection import MultiSelection as MultiSelection
    from bayescrowd.selection.repeats.multi_selection import (
        MultiSelectionClassifier as MultiSelectionClassifier,
    )
    from bayescrowd.selection.repeats.selector import (
        InfeasibleProjectionWarning as InfeasibleProjectionWarning,
    )
    from bayescrowd.selection.workers.curve import selection_curve as selection_curve
    from bayescrowd.selection.workers.mutual_information import (
        MutualInformationSelector as MutualInformationSelector,
    )
    from bayescrowd.selection.workers.selective_dawid_skene import (
        SelectiveDawidSkene as SelectiveDawidSkene,
    )

_SUBMODULES = ("agreement", "crowdkit", "datasets", "metrics", "models", "plots", "simulate")

_NAMES = {
    "Annotations": "bayescrowd.data.annotations",
    "AutoAggregator": "bayescrowd.aggregation.auto.aggregator",
    "Averages": "bayescrowd.selection.repeats.averages",
    "BWA": "bayescrowd.aggregation.bwa",
    "BLeafs": "bayescrowd.budgeted.policies.bleafs",
    "BiasedRobin": "bayescrowd.budgeted.policies.baselines",
    "BudgetedSelection": "bayescrowd.budgeted.policies.lookahead",
    "Copies": "bayescrowd.selection.repeats.averages",
    "Dataset": "bayescrowd.data.dataset",
    "DawidSkene": "bayescrowd.aggregation.dawid_skene",
    "EBCC": "bayescrowd.aggregation.ebcc",
    "EigenRatio": "bayescrowd.aggregation.singular_vectors",
    "EmpiricalBayesDawidSkene": "bayescrowd.aggregation.shrunken.empirical_bayes",
    "ExpensiveFitWarning": "bayescrowd.mixture.stagewise",
    "ExploreThenCommit": "bayescrowd.budgeted.policies.baselines",
    "FeatureSpace": "bayescrowd.budgeted.space",
    "GLAD": "bayescrowd.aggregation.glad",
    "GhoshSVD": "bayescrowd.aggregation.singular_vectors",
    "IBCC": "bayescrowd.aggregation.ibcc",
    "InfeasibleProjectionWarning": "bayescrowd.selection.repeats.selector",
    "KOS": "bayescrowd.aggregation.kos",
    "MACE": "bayescrowd.aggregation.mace",
    "MDPD": "bayescrowd.mixture.mdpd",
    "MMSR": "bayescrowd.aggregation.mmsr",
    "MajorityVote": "bayescrowd.aggregation.majority",
    "ModelSampler": "bayescrowd.budgeted.beliefs.model_sampler",
    "MultiSelection": "bayescrowd.selection.repeats.multi_selection",
    "MultiSelectionClassifier": "bayescrowd.selection.repeats.multi_selection",
    "MutualInformationSelector": "bayescrowd.selection.workers.mutual_information",
    "OneCoinDawidSkene": "bayescrowd.aggregation.one_coin",
    "PosteriorMeanGreedy": "bayescrowd.budgeted.policies.baselines",
    "RoundRobin": "bayescrowd.budgeted.policies.baselines",
    "SelectiveDawidSkene": "bayescrowd.selection.workers.selective_dawid_skene",
    "SpectralDawidSkene": "bayescrowd.aggregation.spectral.estimator",
    "SpellingWarning": "bayescrowd.io.spellings",
    "StagewiseEM": "bayescrowd.mixture.stagewise_estimator",
    "TableDataset": "bayescrowd.data.table_dataset",
    "TruthWarning": "bayescrowd.data.truth",
    "TsGreedy": "bayescrowd.budgeted.policies.baselines",
    "Wawa": "bayescrowd.aggregation.majority",
    "WorkerTypes": "bayescrowd.aggregation.shrunken.worker_types",
    "WorseThanVotesWarning": "bayescrowd.mixture.vote_start",
    "ZeroBasedSkill": "bayescrowd.aggregation.zero_based_skill",
    "aggregate": "bayescrowd.aggregation.auto.aggregator",
    "budget_curve": "bayescrowd.budgeted.evaluation.curve",
    "check_crowd": "bayescrowd.posterior.checks",
    "compare": "bayescrowd.posterior.diagnostics",
    "curve_means": "bayescrowd.budgeted.evaluation.curve_tables",
    "diagnose": "bayescrowd.posterior.diagnostics",
    "group_names": "bayescrowd.posterior.container",
    "label_posterior": "bayescrowd.posterior.sample",
    "load": "bayescrowd.saved_fits.loading",
    "load_dataset": "bayescrowd.datasets.registry",
    "load_table": "bayescrowd.datasets.registry",
    "loo_pit": "bayescrowd.posterior.leave_one_out",
    "loo_pit_data": "bayescrowd.posterior.leave_one_out",
    "pairwise_mutual_information": "bayescrowd.information",
    "paired_differences": "bayescrowd.budgeted.evaluation.curve_tables",
    "panel_report": "bayescrowd.panel.report",
    "plan_budget": "bayescrowd.budgeted.evaluation.planning",
    "prevalence": "bayescrowd.gold.prevalence",
    "read_annotations": "bayescrowd.io.reading",
    "read_truth": "bayescrowd.io.reading",
    "read_verdicts": "bayescrowd.io.verdicts",
    "report": "bayescrowd.reports.page",
    "sample_posterior": "bayescrowd.posterior.sample",
    "selection_curve": "bayescrowd.selection.workers.curve",
    "simulate_budget": "bayescrowd.budgeted.evaluation.simulation",
    "suggest_gold": "bayescrowd.gold.suggestions",
    "worker_posterior": "bayescrowd.posterior.workers",
}

__all__ = ["__version__", *_SUBMODULES, *_NAMES]


if not TYPE_CHECKING:  # otherwise, type checkers would assume that every name exists

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
