"""What `why_` ends with: the first step that applies, with calls and commands that exist."""

import inspect
import re

import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.aggregation.auto.next_steps import next_step
from bayescrowd.cli import main

ANN = bc.Annotations.from_matrix([list("aab"), list("abb"), list("aaa"), list("aab")])


def step(*, certainty=0.99, flags=("", "", ""), n_in_clusters=0, needs_gold=False, interval=None):
    probas = pd.DataFrame({"a": certainty, "b": 1 - certainty}, index=ANN.tasks)
    accuracy = None if interval is None else pd.Series(interval, index=["lower", "upper"])
    return next_step(
        ANN,
        probas,
        pd.DataFrame({"flag": flags}),
        n_in_clusters=n_in_clusters,
        needs_gold=needs_gold,
        accuracy=accuracy,
    )


CASES = {
    "posterior": ({}, "how sure"),
    "unsettled": ({"certainty": 0.9}, "the 4 tasks below 95% (tasks have 3 labels on average)"),
    "clusters": ({"certainty": 0.9, "n_in_clusters": 3}, "drop some of the 3 raters who repeat"),
    "flag": ({"flags": ("", "spammer", ""), "n_in_clusters": 3}, "what the flagged worker has"),
    "flags": ({"flags": ("adversary", "spammer", "")}, "what the 2 flagged workers have"),
    "wide": ({"interval": (0.7, 0.9), "flags": ("x", "", "")}, "would narrow this interval"),
    "narrow": ({"interval": (0.8, 0.85), "needs_gold": True}, "how sure"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_first_that_applies(name):
    arguments, words = CASES[name]
    assert step(**arguments).startswith("Next: ")
    assert words in step(**arguments)


def test_the_alarm_has_said_it():
    assert step(needs_gold=True, flags=("spammer", "", "")) == ""


@pytest.mark.parametrize("name", CASES)
def test_what_is_named_exists(name, capsys):
    text = step(**CASES[name][0])
    for function, arguments in re.findall(r"bayescrowd\.(\w+)\(([^)]*)\)", text):
        inspect.signature(getattr(bc, function)).bind(
            *(None for part in arguments.split(", ") if "=" not in part),
            **{part.partition("=")[0]: None for part in arguments.split(", ") if "=" in part},
        )
    for model in re.findall(r"sample_posterior\('(\w+)'", text):
        assert model in bc.models.__all__
    for command in re.findall(r"bayescrowd (\w+) FILE", text):
        assert main([command, "--help"]) == 0
    assert "--workers FILE" not in text or main(["aggregate", "--help"]) == 0


def test_the_default_ends_with_it():
    data = bc.simulate.crowd(60, 8, 2, labels_per_task=3, accuracy=0.75, seed=1)
    est = bc.AutoAggregator(n_iter=2).fit(data.annotations)
    assert est.alarm_.buy_gold or re.search(r" Next: [^\n]*\.$", est.why_)
