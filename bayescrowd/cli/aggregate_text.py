"""Scores and workers in the summary of `bayescrowd aggregate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from bayescrowd.cli.known_labels import without_truth_warnings
from bayescrowd.cli.text import align
from bayescrowd.data.text import quantity, shorten

if TYPE_CHECKING:
    import pandas as pd

    from bayescrowd.data.annotations import Annotations
    from bayescrowd.metrics import Scores

__all__ = ["ScoresBesideVote", "score_beside_vote", "worker_lines"]


class ScoresBesideVote(NamedTuple):
    """Scores of the labels, and the accuracy of the majority vote on the same tasks."""

    scores: Scores
    """All scores of the labels."""
    lower: float
    """Lower end of Wilson's 95% interval of the accuracy."""
    upper: float
    """Upper end of it."""
    vote: float
    """Accuracy of the majority vote, a tie being a fair guess."""

    def document(self) -> dict[str, Any]:
        """The scores for machines."""
        return self.scores._asdict() | {
            "accuracy_lower": self.lower,
            "accuracy_upper": self.upper,
            "majority_vote_accuracy": self.vote,
        }

    def lines(self, truth: str, n_unscored: int) -> str:
        """The scores for people.

        Args:
            truth: name of the file of true labels.
            n_unscored: number of its tasks whose label the fit was given.
        """
        left_out = f"; {n_unscored:,} more are gold" if n_unscored else ""
        scores = self.scores
        rows = [
            ("accuracy", f"{scores.accuracy:.4f}"),
            ("  its 95% interval", f"{self.lower:.4f} to {self.upper:.4f}"),
            ("  of the majority vote", f"{self.vote:.4f}"),
            ("macro-F1", f"{scores.macro_f1:.4f}"),
            ("log loss (nats)", f"{scores.log_loss:.4f}"),
            ("Brier score", f"{scores.brier:.4f}"),
            ("expected calibration error", f"{scores.ece:.4f}"),
        ]
        lines = [f"scored on {quantity(scores.n, 'task')} of {truth}{left_out}"]
        return "\n".join([*lines, *(f"  {name:<26}  {value}" for name, value in rows)])


def score_beside_vote(
    probas: pd.DataFrame, truth: pd.Series, annotations: Annotations
) -> ScoresBesideVote:
    """Score the labels, and the majority vote beside them."""
    from bayescrowd.aggregation.majority import MajorityVote
    from bayescrowd.metrics import accuracy, score_table, wilson_interval

    scores = score_table(probas, truth)
    with without_truth_warnings():
        vote = accuracy(MajorityVote().fit(annotations).probas_, truth)
    return ScoresBesideVote(scores, *wilson_interval(scores.accuracy, scores.n), vote)


def worker_lines(workers: pd.DataFrame) -> str:
    """The best and the worst workers, and how many are flagged."""
    ranked = workers.sort_values("accuracy", ascending=False, kind="stable")
    header = ["worker", "accuracy", "information", "labels", "flag"]
    if "lower" in workers:
        header.insert(2, "90% interval")
    rows = [header]
    if len(ranked) > 6:
        best, worst = _worker_rows(ranked.head(3)), _worker_rows(ranked.tail(3))
        rows += [*best, ["..."] + [""] * (len(header) - 1), *worst]
    else:
        rows += _worker_rows(ranked)
    flags = workers["flag"].value_counts()
    flagged = [
        quantity(int(flags.get(flag, 0)), flag, plural)
        for flag, plural in (("spammer", None), ("adversary", "adversaries"))
    ]
    return (
        "workers by estimated accuracy (information in nats)\n"
        f"{align(rows, left=(0, len(header) - 1))}\n"
        f"  flagged: {' and '.join(flagged)} among {quantity(len(workers), 'worker')}"
    )


def _worker_rows(workers: pd.DataFrame) -> list[list[str]]:
    return [
        [
            shorten(row.worker, 32),
            f"{row.accuracy:.3f}",
            *([f"{row.lower:.3f} to {row.upper:.3f}"] if "lower" in workers else []),
            f"{row.information:.3f}",
            f"{row.n_labels:,}",
            str(row.flag),
        ]
        for row in workers.itertuples(index=False)
    ]
