"""Names that users type: found in any spelling, or refused with a name that may be meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence

from bayescrowd.data.text import closest_name, did_you_mean, shorten

__all__ = ["known_name", "unknown_option"]

_SEPARATORS = re.compile(r"[\s_-]+")


def known_name(text: str, names: Mapping[str, str], kind: str) -> str:
    """The name that the text stands for, without regard to case, hyphens and underscores.

    Args:
        text: what the user typed.
        names: the name that each spelling stands for; spellings that name the same must not differ
            in case and separators alone.
        kind: what the names are names of, in messages.

    Raises:
        argparse.ArgumentTypeError: there is no such name.

    Examples:
        >>> known_name("DAWID_Skene", {"dawid-skene": "dawid-skene", "mace": "mace"}, "method")
        'dawid-skene'
    """
    if text in names:
        return names[text]
    by_letters = {_letters(spelling): name for spelling, name in names.items()}
    if (found := by_letters.get(_letters(text))) is not None:
        return found
    close = closest_name(text, names)
    hint = did_you_mean(text, dict.fromkeys(names.values()) if close is None else [names[close]])
    raise argparse.ArgumentTypeError(f"no {kind} {shorten(repr(text), 40)}; {hint}")


def unknown_option(arguments: Sequence[str], options: Iterable[str]) -> str | None:
    """The message about the first argument that is no option and looks like one, or None.

    Examples:
        >>> unknown_option(["a.csv", "--methd=wawa"], ["--method", "--out"])
        'no option --methd; did you mean --method?'
    """
    known = set(options)
    for argument in arguments:
        if argument == "--":
            break
        name = argument.partition("=")[0]
        # argparse, too, takes text with blanks and negative numbers for values
        if re.match("--|-[a-zA-Z]", name) and " " not in argument and name not in known:
            close = closest_name(name, (option for option in known if option.startswith("--")))
            hint = "" if close is None else f"; did you mean {close}?"
            return f"no option {shorten(name, 40)}{hint}"
    return None


def _letters(text: str) -> str:
    return _SEPARATORS.sub("", text).casefold()
