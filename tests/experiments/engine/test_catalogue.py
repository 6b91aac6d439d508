import re
import subprocess
import sys

import pytest

from bayescrowd.experiments.engine.catalogue import CATALOGUE, PAPERS, experiment_named

# Every caption of the five papers. The review of the spectral paper has one table and describes the
# experiment with the threshold in its section 6.
CAPTIONS = {
    "spectral": {"Table 1", "Section 6"},
    "mi": {"Table 1", "Table 2", "Figure 1", "Figure 2", "Figure 3"},
    "stagewise": {"Table 1", *(f"Figure {n}" for n in range(1, 6))},
    "bleafs": {"Table 1", "Table 2", *(f"Figure {n}" for n in range(1, 8))},
    "multiselection": {"Figures 1 and 2", "Figure 3", "Figure 4"},
}
AVAILABLE = [entry.name for entry in CATALOGUE.values() if entry.module is not None]


@pytest.mark.parametrize("paper", CAPTIONS)
def test_every_caption_is_in_the_catalogue_once(paper):
    places = [entry.place for entry in CATALOGUE.values() if entry.paper == paper]
    assert len(places) == len(set(places))
    assert set(places) == CAPTIONS[paper]


def test_names_follow_paper_and_place():
    assert {entry.paper for entry in CATALOGUE.values()} == set(PAPERS)
    for entry in CATALOGUE.values():
        if entry.place[0] in "TF":
            place = re.sub(r"[^a-z0-9]|and", "", entry.place.lower())
            assert entry.name == f"{entry.paper}-{place}"


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=lambda entry: entry.name)
def test_status_is_one_of_three(entry):
    assert entry.status.partition(":")[0] in ("available", "not yet", "not reproducible")
    assert entry.module is None or entry.reason is None


@pytest.mark.parametrize("name", AVAILABLE)
def test_available_experiment_bears_its_name(name):
    assert experiment_named(name).name == name


def test_what_cannot_be_run_says_why():
    with pytest.raises(ValueError, match="stagewise-figure2 is not reproducible: an illustration"):
        experiment_named("stagewise-figure2")
    with pytest.raises(ValueError, match=r"unknown experiment 'x'; expected one of "):
        experiment_named("x")


def test_listing_imports_nothing_heavy():
    code = "import sys, bayescrowd.experiments.engine.command; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "pandas", "matplotlib", "scipy", "jax"} & set(done.stdout.split())
