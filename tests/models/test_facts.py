"""What models state about themselves, and that a new model needs no entry anywhere else."""

import subprocess
import sys
from pathlib import Path
from pkgutil import iter_modules

import pytest

import bayescrowd as bc
from bayescrowd import models
from bayescrowd.cli import main
from bayescrowd.models import _facts
from bayescrowd.posterior import conditionals
from bayescrowd.posterior.container import group_of

NAMES = models.__all__


@pytest.mark.parametrize("name", NAMES)
def test_facts_in_the_source_are_those_of_the_module(name):
    facts = getattr(models, name).FACTS
    assert models.catalogue()[name] == facts[:3]
    assert facts.subject in ("labels", "features", "numbers")
    assert facts.summary.strip() == facts.summary != ""


@pytest.mark.parametrize("name", NAMES)
def test_models_with_conditionals_have_a_module_that_offers_them(name):
    path = Path(conditionals.__file__).with_name(f"{name}.py")
    is_offered = path.exists() and "\nCONDITIONALS = " in path.read_text(encoding="utf-8")
    assert is_offered == models.catalogue()[name].has_conditionals


def test_catalogues_are_by_subject():
    subjects = ("labels", "features", "numbers")
    listed = {name: subject for subject in subjects for name in models.catalogue(subject)}
    assert listed == {name: facts.subject for name, facts in models.catalogue().items()}
    assert list(models.catalogue()) == NAMES


def test_reading_facts_loads_no_numerical_library():
    code = "import sys; from bayescrowd import models; models.catalogue(); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"jax", "numpy", "numpyro"} & set(run.stdout.split())


def test_modules_without_facts_are_refused():
    with pytest.raises(LookupError, match="_feature_tables does not end in FACTS = Facts"):
        _facts.read_outline("_feature_tables")
    with pytest.raises(LookupError, match="probit does not end in FACTS = Facts"):
        _facts.read_outline("probit")


# A new model


@pytest.fixture
def new_model(tmp_path, monkeypatch):
    """A copy of the one-coin model under another name: a file in each of the two folders."""
    for package in (models, conditionals):
        source = Path(package.__file__).with_name("one_coin.py").read_text(encoding="utf-8")
        folder = tmp_path / package.__name__
        folder.mkdir()
        copied = source.replace("models.one_coin", "models.loaded_coin")
        copied = copied.replace("one accuracy per worker", "one loaded coin per worker")
        (folder / "loaded_coin.py").write_text(copied, encoding="utf-8")
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    found = sorted(name for _, name, _ in iter_modules(models.__path__) if name[0] != "_")
    assert found == sorted([*NAMES, "loaded_coin"])
    monkeypatch.setattr(models, "__all__", found)  # as after the next import of the package
    yield "loaded_coin"
    for package in (models, conditionals):
        sys.modules.pop(f"{package.__name__}.loaded_coin", None)
        vars(package).pop("loaded_coin", None)


def test_a_new_model_needs_its_file_and_its_conditionals(new_model, capsys):
    crowd = bc.simulate.crowd(20, 5, accuracy=0.8, seed=0)
    options = {"chains": 1, "draws": 4, "warmup": 2, "predictive": False, "progress": False}
    post = bc.sample_posterior(new_model, crowd.annotations, **options)
    assert post.attrs["method"] == "gibbs"
    original = bc.sample_posterior("one_coin", crowd.annotations, **options)
    assert group_of(post, "posterior").equals(group_of(original, "posterior"))
    assert bc.worker_posterior(post).equals(bc.worker_posterior(original))
    for command in ("posterior", "compare"):
        assert main([command, "--help"]) == 0
        assert "  loaded_coin               one loaded coin per worker\n" in capsys.readouterr().out
