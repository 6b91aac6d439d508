"""Pictures, one function each.

* `fits`, `tasks`, `workers`: what an aggregator found; `overview`: several of these in one figure.
* `posterior`: draws, their diagnostics and comparisons of models; `predictions`: what a model
  predicts beside what was observed.
* `selection`, `stagewise`, `multi_selection`: chosen workers, features and repeats.
* `bench`: methods on several crowds.
* `panel`: a panel of judges.
* `budget`: error against budget; `budget_courses`: one run of a policy; `budget_posterior`: what a
  policy knows, from posterior draws; `policy_lines`: the look of each policy's line.
* `canvas`: axes, colours and the look that all pictures share.

A function takes something fitted, or data, draws it on the given matplotlib axes, and returns them.
Without axes it makes a figure of its own that pyplot does not know about, so nothing has to be
closed: `bayescrowd.plots.worker_map(est).figure.savefig("workers.png")`. In a notebook, pass the
axes of `plt.subplots()` to have the picture displayed.

The colours are those of Okabe and Ito, which colour-blind readers can tell apart; whatever a colour
says is also said by a marker or a line style.

Names load on first use, as in `bayescrowd`: a new one takes a line in ``_NAMES`` and its twin below
``TYPE_CHECKING``.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayescrowd.plots.bench import bench_differences as bench_differences
    from bayescrowd.plots.bench import bench_scores as bench_scores
    from bayescrowd.plots.budget import budget_curves as budget_curves
    from bayescrowd.plots.budget import budget_plan as budget_plan
    from bayescrowd.plots.budget_courses import credibility_course as credibility_course
    from bayescrowd.plots.budget_courses import posterior_course as posterior_course
    from bayescrowd.plots.budget_courses import spending_course as spending_course
    from bayescrowd.plots.budget_posterior import credibility_density as credibility_density
    from bayescrowd.plots.budget_posterior import thompson_gains as thompson_gains
    from bayescrowd.plots.fits import convergence as convergence
    from bayescrowd.plots.fits import method_comparison as method_comparison
    from bayescrowd.plots.fits import pool_scores as pool_scores
    from bayescrowd.plots.multi_selection import attribute_map as attribute_map
    from bayescrowd.plots.multi_selection import repeat_losses as repeat_losses
    from bayescrowd.plots.overview import aggregation_overview as aggregation_overview
    from bayescrowd.plots.overview import demo as demo
    from bayescrowd.plots.panel import panel_accuracies as panel_accuracies
    from bayescrowd.plots.panel import panel_agreement as panel_agreement
    from bayescrowd.plots.panel import panel_dropping as panel_dropping
    from bayescrowd.plots.panel import panel_overview as panel_overview
    from bayescrowd.plots.panel import panel_shares as panel_shares
    from bayescrowd.plots.posterior import chain_ranks as chain_ranks
    from bayescrowd.plots.posterior import chain_traces as chain_traces
    from bayescrowd.plots.posterior import loo_comparison as loo_comparison
    from bayescrowd.plots.posterior import posterior_overview as posterior_overview
    from bayescrowd.plots.posterior import predictive_check as predictive_check
    from bayescrowd.plots.posterior import worker_forest as worker_forest
    from bayescrowd.plots.predictions import label_shares as label_shares
    from bayescrowd.plots.predictions import loo_pit as loo_pit
    from bayescrowd.plots.selection import score_curve as score_curve
    from bayescrowd.plots.selection import selection_errors as selection_errors
    from bayescrowd.plots.selection import unexplained_pairs as unexplained_pairs
    from bayescrowd.plots.stagewise import information_map as information_map
    from bayescrowd.plots.stagewise import stagewise_course as stagewise_course
    from bayescrowd.plots.tasks import label_uncertainty as label_uncertainty
    from bayescrowd.plots.tasks import reliability as reliability
    from bayescrowd.plots.workers import confusion_matrix as confusion_matrix
    from bayescrowd.plots.workers import worker_map as worker_map
    from bayescrowd.plots.workers import worker_recovery as worker_recovery

_NAMES = {
    "aggregation_overview": "bayescrowd.plots.overview",
    "attribute_map": "bayescrowd.plots.multi_selection",
    "bench_differences": "bayescrowd.plots.bench",
    "bench_scores": "bayescrowd.plots.bench",
    "budget_curves": "bayescrowd.plots.budget",
    "budget_plan": "bayescrowd.plots.budget",
    "chain_ranks": "bayescrowd.plots.posterior",
    "chain_traces": "bayescrowd.plots.posterior",
    "confusion_matrix": "bayescrowd.plots.workers",
    "convergence": "bayescrowd.plots.fits",
    "credibility_course": "bayescrowd.plots.budget_courses",
    "credibility_density": "bayescrowd.plots.budget_posterior",
    "demo": "bayescrowd.plots.overview",
    "information_map": "bayescrowd.plots.stagewise",
    "label_shares": "bayescrowd.plots.predictions",
    "label_uncertainty": "bayescrowd.plots.tasks",
    "loo_comparison": "bayescrowd.plots.posterior",
    "loo_pit": "bayescrowd.plots.predictions",
    "method_comparison": "bayescrowd.plots.fits",
    "panel_accuracies": "bayescrowd.plots.panel",
    "panel_agreement": "bayescrowd.plots.panel",
    "panel_dropping": "bayescrowd.plots.panel",
    "panel_overview": "bayescrowd.plots.panel",
    "panel_shares": "bayescrowd.plots.panel",
    "pool_scores": "bayescrowd.plots.fits",
    "posterior_course": "bayescrowd.plots.budget_courses",
    "posterior_overview": "bayescrowd.plots.posterior",
    "predictive_check": "bayescrowd.plots.posterior",
    "reliability": "bayescrowd.plots.tasks",
    "repeat_losses": "bayescrowd.plots.multi_selection",
    "score_curve": "bayescrowd.plots.selection",
    "selection_errors": "bayescrowd.plots.selection",
    "spending_course": "bayescrowd.plots.budget_courses",
    "stagewise_course": "bayescrowd.plots.stagewise",
    "thompson_gains": "bayescrowd.plots.budget_posterior",
    "unexplained_pairs": "bayescrowd.plots.selection",
    "worker_forest": "bayescrowd.plots.posterior",
    "worker_map": "bayescrowd.plots.workers",
    "worker_recovery": "bayescrowd.plots.workers",
}

__all__ = [*_NAMES]


if not TYPE_CHECKING:  # type checkers would take it to mean that every name exists

    def __getattr__(name: str) -> object:
        """Load a picture on first use (PEP 562)."""
        if name not in _NAMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_NAMES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
