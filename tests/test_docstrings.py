"""The examples in the docstrings run and print what they say."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "bayescrowd"


def modules_with_examples():
    paths = [*PACKAGE.rglob("*.py"), *(PACKAGE / "models").rglob("*.py")]
    shown = {path for path in paths if ">>> " in path.read_text(encoding="utf-8")}
    parts = [path.relative_to(PACKAGE.parent).with_suffix("").parts for path in sorted(shown)]
    return [".".join(part).removesuffix(".__init__") for part in parts]


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0
    assert result.failed == 0, "the captured output shows what was printed instead"
