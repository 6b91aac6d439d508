"""Naming of classes: worked cases, permutations undone, and crowds that determine nothing."""

import numpy as np
import pytest

from bayescrowd.posterior.alignment import align_chains, complaints, rename_classes

RIGHT = np.array([[8.0, 2.0, 0.0], [1.0, 9.0, 1.0], [2.0, 0.0, 7.0]])
ORDERS = [[0, 1, 2], [1, 2, 0], [2, 1, 0]]


def draws(*orders, n_draws=5):
    """Chains whose hidden class k is the class order[k] of the users."""
    return np.stack([np.repeat(RIGHT[order][None], n_draws, axis=0) for order in orders])


def test_kappa_by_hand():
    # 17 of 20 labels right, 10 x 9 + 10 x 11 of 400 by chance
    agreement = np.array([[8.0, 2.0], [1.0, 9.0]])[None, None]
    expected = (17 / 20 - 1 / 2) / (1 / 2)
    np.testing.assert_allclose(align_chains(agreement, can_rename=True).kappa, expected)


@pytest.mark.parametrize("order", ORDERS)
def test_permuted_chains_are_renamed(order):
    alignment = align_chains(draws([0, 1, 2], order), can_rename=True)
    np.testing.assert_array_equal(alignment.naming, [[0, 1, 2], np.argsort(order)])
    assert alignment.is_renamed.tolist() == [False, order != [0, 1, 2]]
    assert (alignment.unstable == 0).all()
    np.testing.assert_allclose(alignment.kappa[0], alignment.kappa[1])


@pytest.mark.parametrize("order", ORDERS)
def test_values_follow_their_class(order):
    alignment = align_chains(draws([0, 1, 2], order), can_rename=True)
    prevalence = np.array([0.5, 0.3, 0.2])
    values = np.stack([prevalence, prevalence[order]])[:, None]  # chain, draw, cls
    aligned = rename_classes(values, ("chain", "draw", "cls"), alignment.naming)
    np.testing.assert_array_equal(aligned, np.stack([prevalence, prevalence])[:, None])
    same = rename_classes(values, ("chain", "draw", "observed"), alignment.naming)
    np.testing.assert_array_equal(same, values)


def test_renaming_is_reported():
    found = complaints(align_chains(draws([0, 1, 2], [1, 0, 2]), can_rename=True))
    assert len(found) == 1
    assert "chain 1 were renamed" in found[0]


def test_good_chains_give_no_complaint():
    assert complaints(align_chains(draws([0, 1, 2], [0, 1, 2]), can_rename=True)) == []


def test_ties_keep_their_names():
    alignment = align_chains(np.ones((1, 2, 3, 3)), can_rename=True)
    assert not alignment.is_renamed.any()
    assert (alignment.unstable == 0).all()


def test_switching_within_a_chain_is_reported_and_not_undone():
    mixed = draws([0, 1, 2], n_draws=10)
    mixed[0, :3] = RIGHT[[1, 0, 2]]
    alignment = align_chains(mixed, can_rename=True)
    assert not alignment.is_renamed.any()
    np.testing.assert_allclose(alignment.unstable, [0.3])
    assert "30% of the draws" in complaints(alignment)[0]


def test_models_that_cannot_be_renamed_are_unstable_instead():
    alignment = align_chains(draws([1, 0, 2]), can_rename=False)
    assert not alignment.is_renamed.any()
    np.testing.assert_allclose(alignment.unstable, [1.0])


def test_a_guessing_crowd_is_reported():
    agreement = np.array([[6.0, 5.0], [5.0, 6.0]])[None, None]
    (found,) = complaints(align_chains(agreement, can_rename=True))
    assert "hardly better than guessing (kappa 0.09" in found


def test_a_class_nobody_uses_changes_nothing():
    padded = np.pad(draws([0, 1, 2]), ((0, 0), (0, 0), (0, 1), (0, 1)))
    np.testing.assert_allclose(
        align_chains(padded, can_rename=True).kappa,
        align_chains(draws([0, 1, 2]), can_rename=True).kappa,
    )
