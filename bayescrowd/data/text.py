"""Names shortened to fit, names that may have been meant, and numbers with their nouns."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["closest_name", "did_you_mean", "quantity", "shorten", "shorten_middle"]


def closest_name(text: str, names: Iterable[str]) -> str | None:
    """The name that somebody who typed `text` may have meant, or None if none is close.

    Examples:
        >>> closest_name("Blubird", ["rte", "bluebird"])
        'bluebird'
        >>> closest_name("cats", ["rte", "bluebird"])
    """
    by_text = {name.casefold(): name for name in names}
    # difflib's own cutoff, below which suggestions are mostly of another word
    close = get_close_matches(text.casefold(), by_text, n=1, cutoff=0.6)
    return by_text[close[0]] if close else None


def did_you_mean(text: str, names: Iterable[str]) -> str:
    """What to type instead of an unknown name: the closest one, or one of all.

    Examples:
        >>> did_you_mean("dawid-skeen", ["dawid-skene", "mace"])
        'did you mean dawid-skene?'
        >>> did_you_mean("xyz", ["dawid-skene", "mace"])
        'expected one of dawid-skene, mace'
    """
    known = list(names)
    close = closest_name(text, known)
    return f"expected one of {', '.join(known)}" if close is None else f"did you mean {close}?"


def quantity(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun in the right form.

    Examples:
        >>> quantity(1, "task"), quantity(1200, "task"), quantity(2, "class", "classes")
        ('1 task', '1,200 tasks', '2 classes')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def shorten(value: object, most: int) -> str:
    r"""A value on one line of at most `most` characters.

    Examples:
        >>> shorten("a  rather long\nname", 13)
        'a rather l...'
        >>> shorten(7, 13)
        '7'
    """
    text = " ".join(str(value).split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def shorten_middle(value: object, most: int) -> str:
    """A value on one line of at most `most` characters that keeps its ending.

    Examples:
        >>> shorten_middle("GPT-4/Rating_Metrics_Reference/swap", 21)
        'GPT-4/Rat...ence/swap'
    """
    text = " ".join(str(value).split())
    if len(text) <= most:
        return text
    kept = most - 3
    return f"{text[: kept - kept // 2]}...{text[len(text) - kept // 2 :]}"
