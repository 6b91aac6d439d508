"""Users' names and ids, shortened to fit into a table or a picture."""

from __future__ import annotations

__all__ = ["shorten"]


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
