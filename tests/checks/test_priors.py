"""Priors whose fields are arrays: what is accepted, and how tables are brought into order."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from bayescrowd.checks.parameters import check_fields
from bayescrowd.checks.priors import check_prior, place_prior
from bayescrowd.models import dawid_skene, mace, naive_bayes, one_coin

IDS = {"worker": pd.Index(["ann", "bob"]), "cls": pd.Index(["no", "yes", "both"])}
IDS["observed"] = IDS["cls"]
SIZES = {"worker": 2, "cls": 3}


@pytest.mark.parametrize(
    "prior",
    [
        dawid_skene.Prior(),
        dawid_skene.Prior(prevalence=jnp.ones(3), n_pseudo_labels=np.array([2.0, 5.0])),
        dawid_skene.Prior(accuracy=jnp.full((2, 3), 0.7)),
        dawid_skene.Prior(accuracy=jnp.full((1, 3), 0.7)),
        dawid_skene.Prior(accuracy=jnp.asarray(0.7)),
        dawid_skene.Prior(confusion=jnp.ones((3, 3))),
        dawid_skene.Prior(confusion=jnp.ones((2, 3, 3))),
        mace.Prior(strategy=jnp.ones(3)),
    ],
)
def test_shapes_that_the_model_names_are_accepted(prior):
    check_fields("prior", prior)
    check_prior(prior, **SIZES)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (dawid_skene.Prior(prevalence=jnp.ones(2)), r"prior.prevalence has the shape \(2,\): exp"),
        (
            one_coin.Prior(accuracy=jnp.full(3, 0.5)),
            r"a number or an array of the shape \(worker: 2",
        ),
        (
            dawid_skene.Prior(confusion=jnp.ones((2, 2))),
            r"shape \(cls: 3, observed: 3\) or \(worker",
        ),
        (mace.Prior(knowing=jnp.ones((2, 3))), r"prior.knowing has the shape \(2, 3\)"),
    ],
)
def test_wrong_shapes_are_refused(prior, message):
    with pytest.raises(ValueError, match=message):
        check_prior(prior, **SIZES)


@pytest.mark.parametrize(
    ("prior", "error", "message"),
    [
        (
            one_coin.Prior(accuracy=jnp.array([0.5, 1.5])),
            ValueError,
            r"prior.accuracy\[1\]=1.5: exp",
        ),
        (
            one_coin.Prior(accuracy=jnp.ones((2, 3))),
            ValueError,
            r"array \[worker\] of such numbers",
        ),
        (dawid_skene.Prior(confusion=jnp.zeros((3, 3))), ValueError, r"confusion\[0, 0\]=0.0: exp"),
        (
            dawid_skene.Prior(confusion=1.0),
            TypeError,
            r"an array \[cls, observed\] or \[worker, cls",
        ),
        (dawid_skene.Prior(prevalence="many"), TypeError, "prior.prevalence='many': expected"),
        (naive_bayes.Prior(conditional=jnp.array([1.0, np.nan])), ValueError, r"\[1\]=nan: exp"),
    ],
)
def test_wrong_numbers_are_refused(prior, error, message):
    with pytest.raises(error, match=message):
        check_fields("prior", prior)


def test_series_and_tables_are_read_by_their_ids():
    accuracy = pd.Series({"eve": 0.9, "bob": 0.6, "ann": 0.8})
    placed = place_prior(one_coin.Prior(accuracy=accuracy), IDS)
    np.testing.assert_allclose(placed.accuracy, [0.8, 0.6], rtol=1e-6)
    rows = pd.DataFrame([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], ["bob", "ann"], ["yes", "both", "no"])
    placed = place_prior(dawid_skene.Prior(n_pseudo_labels=rows, prevalence=3.0), IDS)
    np.testing.assert_array_equal(placed.n_pseudo_labels, [[6.0, 4.0, 5.0], [3.0, 1.0, 2.0]])
    assert placed.prevalence == 3.0


def test_ids_without_a_number_are_named():
    with pytest.raises(ValueError, match=r"prior.accuracy: worker 'ann' has no number"):
        place_prior(one_coin.Prior(accuracy=pd.Series({"bob": 0.6})), IDS)
    table = pd.DataFrame(np.ones((2, 3)), IDS["worker"], IDS["cls"])
    with pytest.raises(ValueError, match=r"prior.accuracy is a DataFrame; expected \[worker\]"):
        place_prior(one_coin.Prior(accuracy=table), IDS)
