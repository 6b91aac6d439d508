"""How well models foresee labels that are withheld from them, and what weight that earns.

Each label is withheld in turn. Given a fit with posterior q_t over the states of task t and rows
pi_w of worker w, label l of w on t is foreseen with probability

    sum_z q_t^-(z) pi_wz^-(l),   q_t^-(z) proportional to q_t(z) / pi_wz(l),                   (1)

where q^- is the posterior given the other labels of the task and pi^- is the row without the
label's own count (`row_models.py`, equation 1, with n - q_t). Nothing is fitted again, and there
are no folds to draw: the score of a label does not depend on the order or the names of anything.
What the label has told about the other tasks stays in, which is of the order of one label in all of
the worker's. On 65 crowds weights from (1) and from refitting on five folds gave labels of the same
error (14.2 and 14.3 %).

A one-coin model foresees labels badly on crowds that prefer one class, however well it finds the
classes: its rows are too poor. It is judged by the rows that its posterior implies, not by its own.

Weights follow the mean difference to the best model in units of its standard error, z,

    weight proportional to  prior weight x exp(z / 4).                                         (2)

They are soft, because foreseeing labels and finding the truth are but loosely the same thing:
within a crowd the rank correlation of the two over models was .4. For the same reason no more than
`MOST_LABELS` labels count in the standard error: however surely a model foresees labels better,
that it finds the truth better is not surer.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayescrowd.aggregation.em import log_floored
from bayescrowd.aggregation.row_models import Fit, log_rows
from bayescrowd.aggregation.symbols import Symbols

__all__ = ["model_weights", "withheld_scores"]

SOFTNESS = 4.0
"""Standard errors that divide a weight by e."""

MOST_LABELS = 10_000
"""That count in a standard error."""

LEAST_WEIGHT = 0.02
"""Of the largest; models below it are left out."""


def withheld_scores(symbols: Symbols, fit: Fit, judged: Fit) -> Float[np.ndarray, " label"]:
    """log of equation 1 for each label, in nats.

    Args:
        symbols: the pairs of a worker and a label.
        fit: whose posterior is judged.
        judged: whose rows foresee: `fit` itself, or the rows that its posterior implies.
    """
    task, symbol = symbols.task_of_label, symbols.of_label
    posterior = fit.posterior[task]
    own = log_rows(fit.base, fit.counts, fit.totals, symbols.worker, symbols.label)
    others = log_floored(posterior) - own[symbol]
    others -= others.max(axis=1, keepdims=True)
    np.exp(others, out=others)
    others /= others.sum(axis=1, keepdims=True)
    rows = judged.base.rows(symbols.worker, symbols.label)[symbol]
    strength = judged.base.strength
    if not np.isinf(strength):
        left = np.maximum(judged.counts[symbol] - posterior, 0.0)
        given = np.maximum(judged.totals[symbols.worker[symbol]] - posterior, 0.0)
        rows = (left + strength * rows) / (given + strength)
    return log_floored((others * rows).sum(axis=1))


def model_weights(
    scores: Mapping[str, Float[np.ndarray, " label"]], prior_weights: Mapping[str, float]
) -> pd.DataFrame:
    """Weights by equation 2, with what they come from.

    Args:
        scores: log probability of each withheld label, for each model.
        prior_weights: of each model.

    Returns:
        A row per model: score (mean log probability, nats per label), below_best (how much lower
        than the best), standard_error (of that difference), weight.

    Examples:
        >>> import numpy as np
        >>> a, b = np.log([0.5, 0.5, 0.6, 0.5]), np.log([0.4, 0.5, 0.4, 0.5])
        >>> model_weights({"a": a, "b": b}, {"a": 1.0, "b": 1.0})["weight"].round(2).to_list()
        [0.61, 0.39]
    """
    best = max(scores, key=lambda name: float(scores[name].mean()))
    rows = {}
    for name, score in scores.items():
        difference = scores[best] - score
        error = float(difference.std() / np.sqrt(min(len(score), MOST_LABELS)))
        z = -float(difference.mean()) / error if error > 0 else 0.0
        rows[name] = {
            "score": float(score.mean()),
            "below_best": float(difference.mean()),
            "standard_error": error,
            "weight": prior_weights[name] * np.exp(z / SOFTNESS),
        }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")
    weight = table["weight"].where(table["weight"] >= LEAST_WEIGHT * table["weight"].max(), 0.0)
    return table.assign(weight=weight / weight.sum())
