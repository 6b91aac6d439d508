"""Pairs of a worker and a label, against dense arrays."""

import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.aggregation.em import EMEstimate
from bayescrowd.aggregation.worker_label_pairs import Symbols


@pytest.fixture(scope="module")
def ann():
    """Twelve tasks, five workers, four classes of which one is not used; worker 4 is silent."""
    rng = np.random.default_rng(0)
    task, worker = np.nonzero(rng.random((12, 4)) < 0.7)
    label = rng.integers(3, size=len(task))
    return bc.Annotations.from_codes(task, worker, label, tasks=12, workers=5, classes=4)


def test_symbols_are_the_pairs_that_occur(ann):
    symbols = Symbols(ann)
    pairs = set(zip(ann.worker_codes.tolist(), ann.label_codes.tolist(), strict=True))
    assert list(zip(symbols.worker.tolist(), symbols.label.tolist(), strict=True)) == sorted(pairs)
    np.testing.assert_array_equal(symbols.worker[symbols.of_label], ann.worker_codes)
    np.testing.assert_array_equal(symbols.label[symbols.of_label], ann.label_codes)


def test_sums_by_worker_and_label(ann):
    symbols = Symbols(ann)
    counts = np.random.default_rng(1).random((len(symbols), 4))
    for sums, group, n in (
        (symbols.by_worker(counts), symbols.worker, 5),
        (symbols.by_label(counts), symbols.label, 4),
    ):
        expected = [counts[group == g].sum(axis=0) for g in range(n)]
        np.testing.assert_allclose(sums, expected, rtol=1e-12)


def test_find(ann):
    symbols = Symbols(ann)
    worker, label = (axis.ravel() for axis in np.indices((5, 4)))
    found = symbols.find(worker, label)
    present = found >= 0
    assert present.sum() == len(symbols)
    np.testing.assert_array_equal(symbols.worker[found[present]], worker[present])
    np.testing.assert_array_equal(symbols.label[found[present]], label[present])
    nobody = symbols.find(np.full(3, -1), np.arange(3))
    assert nobody.tolist() == [-1, -1, -1]


def test_a_known_truth_rules_out_the_states_of_other_classes(ann):
    fixed = np.full(12, -1, dtype=np.int32)
    fixed[[0, 7]] = [2, 3]
    symbols = Symbols(ann, fixed)
    counts = symbols.incidence(8).counts(np.ones((12, 8)))
    known = counts[len(symbols) :, 0]
    assert known.tolist() == [0, 0, 1, 1]
    table = np.zeros((len(symbols) + 4, 8))
    table[len(symbols) :] = np.where(np.arange(4)[:, None] == np.arange(8) % 4, 0.0, -690.0)
    posterior = np.empty((12, 8))
    symbols.incidence(8).sweep(EMEstimate(table, np.full(8, -np.log(8)), 0.0, None), posterior)
    np.testing.assert_allclose(posterior[0, [2, 6]], 0.5)
    np.testing.assert_allclose(posterior[7, [3, 7]], 0.5)
    np.testing.assert_allclose(posterior[1], 1 / 8)
