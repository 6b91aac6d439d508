"""From a point estimate to the posterior of its model: `Aggregator.posterior`."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import bayescrowd as bc
from bayescrowd.posterior import sample
from bayescrowd.posterior.container import group_of

SHAPE = {"chains": 3, "draws": 1000}
"""Shape of the fixture `post`, so that its compiled program is used again."""

MODELS = {
    name: model
    for name in bc.__all__
    if (model := getattr(getattr(bc, name), "_model_name", None)) is not None
}
"""The model of every public estimator that has one."""


@pytest.fixture(scope="module")
def crowd():
    return bc.simulate.crowd(60, 8, 2, labels_per_task=5, accuracy=0.75, seed=3)


def assert_same_labels(one, other, n_effective):
    """A draw's probability deviates by at most 1/2 from its mean."""
    gap = np.abs((bc.label_posterior(one) - bc.label_posterior(other)).to_numpy())
    assert gap.max() < 4 * 0.5 * np.sqrt(2 / n_effective)


def test_posterior_is_that_of_the_model(awkward, post):
    started = bc.DawidSkene(seed=8).fit(awkward[0]).posterior(**SHAPE)
    assert started.attrs["seed"] == 8
    assert started.attrs["model"] == "dawid_skene"
    effective = min(bc.diagnose(started).ess_bulk, bc.diagnose(post).ess_bulk)
    assert effective > 300
    assert_same_labels(started, post, effective)


def test_row_order_makes_no_difference(awkward):
    ann = awkward[0]
    codes = (ann.task_codes, ann.worker_codes, ann.label_codes)
    ids = {"tasks": ann.tasks, "workers": ann.workers, "classes": ann.classes}
    backward = bc.Annotations.from_codes(*(code[::-1] for code in codes), **ids)
    one, other = (bc.DawidSkene().fit(labels).posterior(**SHAPE) for labels in (ann, backward))
    assert group_of(one, "posterior").equals(group_of(other, "posterior"))


def test_every_model_of_an_estimator_is_one_of_labels():
    assert {"DawidSkene", "MACE", "GLAD"} <= set(MODELS)
    assert set(MODELS.values()) <= set(bc.models.catalogue("labels"))


# The crowd is too small for the moments of the spectral start.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
def test_model_and_start_are_those_of_the_estimator(crowd, monkeypatch, name):
    asked = []
    monkeypatch.setattr(sample, "sample_posterior", lambda *args, **kw: asked.append((args, kw)))
    est = getattr(bc, name)(seed=5).fit(crowd.annotations)
    est.posterior(draws=7)
    est.posterior(method="nuts", init="random", seed=6)
    (arguments, options), (_, given) = asked
    assert arguments == (MODELS[name], crowd.annotations)
    assert options.pop("init") is est.probas_
    assert options == {"seed": 5, "draws": 7}
    assert given == {"method": "nuts", "init": "random", "seed": 6}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["OneCoinDawidSkene", "MACE", "GLAD"])
@pytest.mark.filterwarnings("ignore:the crowd is hardly better than guessing")
def test_other_posteriors_are_those_of_their_models(crowd, name):
    model = getattr(bc.models, MODELS[name])
    # sweeps of MACE are quick, and consecutive ones are alike
    draws = 4000 if model.FACTS.has_conditionals else 500
    options = {"chains": 2, "draws": draws, "warmup": 500, "predictive": False}
    options["log_likelihood"] = False
    started = getattr(bc, name)().fit(crowd.annotations).posterior(seed=8, **options)
    direct = bc.sample_posterior(model, crowd.annotations, **options)
    effective = min(bc.diagnose(started).ess_bulk, bc.diagnose(direct).ess_bulk)
    assert effective > 50
    assert_same_labels(started, direct, effective)


def test_known_labels_of_the_fit_are_those_of_the_posterior(crowd, monkeypatch):
    gold = crowd.truth[:3]
    est = bc.DawidSkene().fit(crowd.annotations, gold=gold)
    asked = []
    monkeypatch.setattr(sample, "sample_posterior", lambda *args, **kw: asked.append(kw))
    est.posterior()
    assert dict(asked[0]["gold"]) == dict(gold)


# Refusals


def test_methods_without_a_model_say_so(crowd):
    with pytest.raises(TypeError, match="MajorityVote has no generative model to draw from"):
        bc.MajorityVote().fit(crowd.annotations).posterior()


def test_a_posterior_needs_a_fit():
    with pytest.raises(NotFittedError):
        bc.DawidSkene().posterior()
