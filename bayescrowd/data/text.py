"""Names shortened to fit into a table, a message or a picture, and numbers with their nouns."""

from __future__ import annotations

__all__ = ["quantity", "shorten", "shorten_middle"]


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
