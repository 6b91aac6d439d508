"""Pairs of a worker and a label, against dense arrays."""

import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.aggregation.em import EMEstimate
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs


@pytest.fixture(scope="module")
def ann():
    """Twelve tasks, five workers, four classes of which one is not used; worker 4 is silent."""
    rng = np.random.default_rng(0)
    task, worker = np.nonzero(rng.random((12, 4)) < 0.7)
    label = rng.integers(3, size=len(task))
    return bc.Annotations.from_codes(task, worker, label, tasks=12, workers=5, classes=4)


def test_every_pair_that_occurs_is_there_once(ann):
    pairs = WorkerLabelPairs(ann)
    expected = set(zip(ann.worker_codes.tolist(), ann.label_codes.tolist(), strict=True))
    assert list(zip(pairs.worker.tolist(), pairs.label.tolist(), strict=True)) == sorted(expected)
    np.testing.assert_array_equal(pairs.worker[pairs.of_label], ann.worker_codes)
    np.testing.assert_array_equal(pairs.label[pairs.of_label], ann.label_codes)


def test_sums_by_worker_and_label(ann):
    pairs = WorkerLabelPairs(ann)
    counts = np.random.default_rng(1).random((len(pairs), 4))
    for sums, group, n in (
        (pairs.by_worker(counts), pairs.worker, 5),
        (pairs.by_label(counts), pairs.label, 4),
    ):
        expected = [counts[group == g].sum(axis=0) for g in range(n)]
        np.testing.assert_allclose(sums, expected, rtol=1e-12)


def test_find(ann):
    pairs = WorkerLabelPairs(ann)
    worker, label = (axis.ravel() for axis in np.indices((5, 4)))
    found = pairs.find(worker, label)
    present = found >= 0
    assert present.sum() == len(pairs)
    np.testing.assert_array_equal(pairs.worker[found[present]], worker[present])
    np.testing.assert_array_equal(pairs.label[found[present]], label[present])
    nobody = pairs.find(np.full(3, -1), np.arange(3))
    assert nobody.tolist() == [-1, -1, -1]


def test_a_known_truth_rules_out_the_states_of_other_classes(ann):
    fixed = np.full(12, -1, dtype=np.int32)
    fixed[[0, 7]] = [2, 3]
    pairs = WorkerLabelPairs(ann, fixed)
    counts = pairs.incidence(8).counts(np.ones((12, 8)))
    known = counts[len(pairs) :, 0]
    assert known.tolist() == [0, 0, 1, 1]
    table = np.zeros((len(pairs) + 4, 8))
    table[len(pairs) :] = np.where(np.arange(4)[:, None] == np.arange(8) % 4, 0.0, -690.0)
    posterior = np.empty((12, 8))
    pairs.incidence(8).sweep(EMEstimate(table, np.full(8, -np.log(8)), 0.0, None), posterior)
    np.testing.assert_allclose(posterior[0, [2, 6]], 0.5)
    np.testing.assert_allclose(posterior[7, [3, 7]], 0.5)
    np.testing.assert_allclose(posterior[1], 1 / 8)
