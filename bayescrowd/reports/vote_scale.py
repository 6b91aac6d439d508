"""Picture of the effective votes: how many independent votes the labels of a task amount to."""

from __future__ import annotations

from bayescrowd.reports.svg import WIDTH, Svg, element, picture, text

__all__ = ["vote_scale"]


def vote_scale(n_votes: float, effective_votes: tuple[float, float]) -> Svg:
    """A bar for the labels of a task, and inside it the bracket of independent votes.

    Examples:
        >>> "2.0 to 3.0 independent votes" in vote_scale(5.0, (2.0, 3.0))
        True
    """
    low, high = (min(end, n_votes) for end in effective_votes)
    scale = WIDTH / n_votes if n_votes > 0 else 0.0
    drawn = [
        element("rect", x=0, y=22, width=WIDTH, height=20, class_="whole"),
        element("rect", x=0, y=22, width=high * scale, height=20, class_="maybe"),
        element("rect", x=0, y=22, width=low * scale, height=20, class_="bar"),
        text(_bracket(effective_votes), 0, 14),
        text(f"{n_votes:.3g} labels per task", WIDTH, 58, anchor="end", kind="value"),
    ]
    label = f"{n_votes:.3g} labels per task amount to {_bracket(effective_votes)}"
    return picture(*drawn, height=64, label=label)


def _bracket(effective_votes: tuple[float, float]) -> str:
    low, high = effective_votes
    return f"{low:.1f} to {high:.1f} independent votes"
