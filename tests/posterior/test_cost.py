"""Estimates of memory and time against shapes of real draws, and what is done with them."""

import logging

import jax
import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.checks import memory
from bayescrowd.cli import main
from bayescrowd.posterior import chains, cost
from bayescrowd.posterior.container import group_of
from bayescrowd.posterior.crowd_adapter import crowd_problem


@pytest.fixture(scope="module")
def ann():
    return bc.simulate.crowd(30, 5, 3, accuracy=0.9, seed=0).annotations


def test_the_work_of_a_sweep_by_hand(ann):
    def work(model):
        return cost.sweep_work(crowd_problem(model, ann, model.Prior()))

    # 150 labels, 5 workers, 3 classes; 10 labels a parameter and 5,000 a sweep
    prevalence, rows = 3, 5 * 3**2
    assert work(bc.models.dawid_skene) == 150 + 10 * (prevalence + rows) + 5000
    crowd, strength = 3**2, 3
    pooled = 150 + 10 * (prevalence + crowd + strength + rows) + 5000
    assert work(bc.models.hierarchical_dawid_skene) == 2.5 * pooled


MODELS = bc.models.catalogue("labels")


@pytest.mark.parametrize("name", [name for name, facts in MODELS.items() if facts.has_conditionals])
def test_draws_have_the_size_that_is_counted(ann, name, monkeypatch):
    """With one copy of the draws and nothing beside them, the estimate is their exact size."""
    model = getattr(bc.models, name)
    problem = crowd_problem(model, ann, model.Prior())
    monkeypatch.setattr(cost, "COPIES_OF_DRAWS", 1)
    shapes = {"chains": 2, "keep_log_likelihood": True}
    more, fewer = (cost.sampling_bytes(problem, draws=n, **shapes) for n in (30, 20))
    post = bc.sample_posterior(model, ann, chains=2, draws=10, warmup=0, predictive=False)
    params = group_of(post, "posterior")
    n_bytes = sum(params[site].nbytes for site in params.data_vars)
    n_bytes += group_of(post, "log_likelihood")["labels"].nbytes
    agreement = 2 * 10 * 3**2 * 4
    assert more - fewer == n_bytes + agreement


@pytest.mark.parametrize("name", [n for n, facts in MODELS.items() if not facts.has_conditionals])
def test_axes_without_ids_are_counted(ann, name, monkeypatch):
    """Types of workers and difficulties of tasks are no axes of the labels, but are counted."""
    model = getattr(bc.models, name)
    problem = crowd_problem(model, ann, model.Prior())
    monkeypatch.setattr(cost, "COPIES_OF_DRAWS", 1)
    shapes = {"chains": 2, "keep_log_likelihood": False}
    more, fewer = (cost.sampling_bytes(problem, draws=n, **shapes) for n in (30, 20))
    design = (problem.data.item, problem.data.worker)
    drawn = model.simulate(jax.random.key(0), *design, **problem.sizes._asdict())
    n_entries = sum(getattr(drawn.params, site).size for site in problem.dims)
    assert more - fewer == 2 * 10 * 4 * (n_entries + 3**2)


def test_a_thousand_classes_are_refused_with_the_size():
    """Matrices of 300 workers and 1,000 classes: 1.2 GB a draw, 5 TB for 4,000 of them."""
    task = np.arange(2000) // 2
    worker, label = np.arange(2000) % 300, np.arange(2000) % 1000
    ann = bc.Annotations.from_codes(task, worker, label, tasks=1000, workers=300, classes=1000)
    problem = crowd_problem(bc.models.dawid_skene, ann, bc.models.dawid_skene.Prior())
    n_bytes = cost.sampling_bytes(problem, chains=4, draws=1000, keep_log_likelihood=False)
    assert n_bytes > 4 * 4 * 1000 * 300 * 1000**2


def test_draws_that_do_not_fit_are_refused_before_they_are_made(ann, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 50e3)
    monkeypatch.setattr(
        "bayescrowd.posterior.sample.run_chains", lambda *_, **__: pytest.fail("it was tried")
    )
    message = r"4 x 1,000 draws of dawid_skene with 5 workers and 3 classes: .* 50\.0 kB"
    with pytest.raises(ValueError, match=message):
        bc.sample_posterior(bc.models.dawid_skene, ann)
    with pytest.raises(ValueError, match=message):
        bc.DawidSkene(n_iter=1, tol=0.0).fit(ann).posterior()


def test_the_command_line_refuses_in_one_line(tmp_path, ann, monkeypatch, capsys):
    path = tmp_path / "labels.csv"
    ann.to_frame().to_csv(path, index=False)
    monkeypatch.setattr(memory, "available_bytes", lambda: 50e3)
    assert main(["posterior", str(path)]) == 2
    assert main(["compare", str(path), "--models", "dawid_skene,one_coin"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all("draws of dawid_skene" in line and "50.0 kB are available" in line for line in lines)


def test_long_sampling_is_announced(ann, monkeypatch, caplog):
    model, options = bc.models.one_coin, {"chains": 1, "draws": 5, "warmup": 5, "predictive": False}
    monkeypatch.setattr(chains, "LONG_SECONDS", np.inf)
    monkeypatch.setattr(cost, "LARGE_BYTES", np.inf)
    with caplog.at_level(logging.WARNING, logger="bayescrowd.posterior"):
        quick = bc.sample_posterior(model, ann, **options)
        assert not caplog.records
        monkeypatch.setattr(chains, "LONG_SECONDS", 0.0)
        monkeypatch.setattr(cost, "LARGE_BYTES", 0.0)
        long = bc.sample_posterior(model, ann, **options)
    memory_line, time_line = (record.getMessage() for record in caplog.records)
    assert memory_line.startswith("1 x 5 draws of one_coin with 5 workers and 3 classes take about")
    assert time_line.startswith("gibbs: 10 draws of each chain will take about")
    # Announcing changes nothing.
    np.testing.assert_array_equal(
        group_of(quick, "posterior")["accuracy"], group_of(long, "posterior")["accuracy"]
    )
