"""The two tables that crowd-kit's own tests use, typed anew: five tasks, and ten animals."""

import warnings

import pandas as pd
import pytest

TOY = {  # answers to t1 ... t5; - where there is none
    "w1": "no yes yes yes yes",
    "w2": "yes yes no yes no",
    "w3": "- yes no yes no",
    "w4": "yes no yes yes no",
    "w5": "no no no yes no",
}
TOY_TRUTH = "yes yes no yes no"

ANIMALS = {  # chicken, goose or parrot for tasks a0 ... a9
    "steady": "- - goose parrot - parrot goose goose - parrot",
    "quick": "chicken chicken - parrot chicken - goose - parrot -",
    "calm": "- chicken goose - - parrot - goose - parrot",
    "brief": "chicken chicken goose - - - goose - - -",
    "fraudster": "parrot - parrot parrot parrot - - parrot parrot -",
    "careless": "- goose - parrot goose parrot - - parrot parrot",
}
ANIMALS_TRUTH = "chicken chicken goose parrot chicken parrot goose goose parrot parrot"


def long_table(labels, prefix, first):
    """The labels, worker by worker."""
    rows = [
        (worker, f"{prefix}{number}", label)
        for worker, row in labels.items()
        for number, label in enumerate(row.split(), start=first)
        if label != "-"
    ]
    return pd.DataFrame(rows, columns=["worker", "task", "label"])


def named_truth(labels, prefix, first):
    truth = {f"{prefix}{n}": label for n, label in enumerate(labels.split(), start=first)}
    return pd.Series(truth, name="agg_label").rename_axis("task")


@pytest.fixture
def toy():
    return long_table(TOY, "t", 1)


@pytest.fixture
def toy_truth():
    return named_truth(TOY_TRUTH, "t", 1)


@pytest.fixture
def animals():
    return long_table(ANIMALS, "a", 0)


@pytest.fixture
def animals_truth():
    return named_truth(ANIMALS_TRUTH, "a", 0)


@pytest.fixture
def booleans():
    rows = [(w, t, w != "w3") for w in ("w1", "w2", "w3") for t in ("t1", "t2")]
    return pd.DataFrame(rows, columns=["worker", "task", "label"])


@pytest.fixture
def peer():
    """crowd-kit itself, where it is installed, without its warnings about pandas."""
    reason = "crowd-kit is in the benchmark extra only"
    aggregation = pytest.importorskip("crowdkit.aggregation", reason=reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield aggregation
