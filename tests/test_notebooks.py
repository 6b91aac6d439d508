"""Every notebook runs from top to bottom, and its stored outputs stay small."""

import re
from pathlib import Path

import nbclient
import nbformat
import pytest

import bayescrowd as bc

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES = 700_000


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


def _marked(path: Path) -> object:
    """A notebook whose metadata say so runs among the slow tests."""
    metadata = nbformat.read(path, as_version=4).metadata.get("bayescrowd", {})
    marks = [pytest.mark.slow] if metadata.get("slow") else []
    return pytest.param(path, marks=marks, id=path.stem)


@pytest.mark.parametrize("path", [_marked(path) for path in NOTEBOOKS])
def test_a_notebook_runs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    for name in notebook.metadata.get("bayescrowd", {}).get("datasets", []):
        _skip_unless_local(name)
    # A short setting that long notebooks read; each one says what it does there.
    notebook.cells.insert(0, nbformat.v4.new_code_cell("import os; os.environ['SHORT'] = '1'"))
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": FOLDER}}
    )
    client.execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_clean(path: Path) -> None:
    assert path.stat().st_size < MOST_BYTES
    outputs = [
        output
        for cell in nbformat.read(path, as_version=4).cells
        for output in cell.get("outputs", [])
    ]
    assert not [output for output in outputs if output.output_type == "error"]


def _skip_unless_local(name: str) -> None:
    if not bc.datasets.is_local(name):
        pytest.skip(f"{name} is not on this machine: set BAYESCROWD_DATA to a folder that has it")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_imports_from_the_top_level_only(path: Path) -> None:
    """What a notebook shows is what a reader would write."""
    cells = nbformat.read(path, as_version=4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    assert re.findall(r"^\s*(?:from|import) bayescrowd\..*", code, flags=re.MULTILINE) == []
