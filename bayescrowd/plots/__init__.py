"""Pictures, one function each.

A function takes what was fitted, or data, and draws it on the matplotlib axes it is given, which
it returns. Without axes it makes a figure of its own that pyplot knows nothing of, so that nothing
has to be closed: `bayescrowd.plots.worker_map(est).figure.savefig("workers.png")`. In a notebook,
pass the axes of `plt.subplots()`, and the picture shows up.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; what a colour says,
a marker or a line style says as well.
"""

from bayescrowd.plots.budget import (
    budget_curves,
    budget_plan,
    credibility_course,
    posterior_course,
    spending_course,
)
from bayescrowd.plots.fits import convergence, method_comparison, pool_scores
from bayescrowd.plots.multi_selection import attribute_map, repeat_losses
from bayescrowd.plots.overview import demo
from bayescrowd.plots.posterior import (
    chain_ranks,
    chain_traces,
    loo_comparison,
    posterior_overview,
    predictive_check,
    worker_forest,
)
from bayescrowd.plots.selection import score_curve, selection_errors, unexplained_pairs
from bayescrowd.plots.stagewise import information_map, stagewise_course
from bayescrowd.plots.tasks import label_uncertainty, reliability
from bayescrowd.plots.workers import confusion_matrix, worker_map, worker_recovery

__all__ = [
    "attribute_map",
    "budget_curves",
    "budget_plan",
    "chain_ranks",
    "chain_traces",
    "confusion_matrix",
    "convergence",
    "credibility_course",
    "demo",
    "information_map",
    "label_uncertainty",
    "loo_comparison",
    "method_comparison",
    "pool_scores",
    "posterior_course",
    "posterior_overview",
    "predictive_check",
    "reliability",
    "repeat_losses",
    "score_curve",
    "selection_errors",
    "spending_course",
    "stagewise_course",
    "unexplained_pairs",
    "worker_forest",
    "worker_map",
    "worker_recovery",
]
