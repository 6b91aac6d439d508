"""Rows stored by what was said, against the whole matrices that they stand for."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import bayescrowd as bc
from bayescrowd.aggregation.smoothing import crowd_rows, mean_rows, smoothed_pairs, smoothed_rows
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import CoinRows, DenseRows, SparseRows
from bayescrowd.checks import memory

PRIORS = np.array([0.5, 0.3, 0.15, 0.05])


@pytest.fixture(scope="module")
def pairs():
    """Pairs of seven workers and four classes, one of which nobody names; the last is silent."""
    rng = np.random.default_rng(0)
    task, worker = np.nonzero(rng.random((9, 6)) < 0.5)
    label = rng.integers(3, size=len(task))
    ann = bc.Annotations.from_codes(task, worker, label, tasks=9, workers=7, classes=4)
    return WorkerLabelPairs(ann)


def dense_counts(pairs, counts):
    """[worker, true, observed], one entry after the other."""
    dense = np.zeros((pairs.n_workers, pairs.n_classes, pairs.n_classes))
    for worker, label, row in zip(pairs.worker, pairs.label, counts, strict=True):
        dense[worker, :, label] = row
    return dense


def information(matrix, priors):
    """Mutual information by its definition."""
    joint = priors[:, None] * matrix
    product = priors[:, None] * joint.sum(axis=0)
    return sum(
        p * np.log(p / q) for p, q in zip(joint.ravel(), product.ravel(), strict=True) if p > 0
    )


# Smoothing: the sparse form against the dense one, which `test_smoothing` holds against optimisers.


@pytest.mark.parametrize("base", ["flat", "diagonal", "pooled", "centre"])
@pytest.mark.parametrize("pseudo_counts", [0.0, 0.7, 5.0])
def test_smoothed_pairs_are_the_smoothed_rows(pairs, base, pseudo_counts):
    rng = np.random.default_rng(1)
    counts = rng.gamma(0.7, 3.0, size=(len(pairs), 4))
    counts[:, 3] = 0.0  # a class without labels
    options = {
        "flat": (np.full((4, 4), 0.25), None),
        "diagonal": (np.eye(4), None),
        "pooled": (None, None),
        "centre": (None, rng.dirichlet(np.ones(4), size=4)),
    }[base]
    ours = smoothed_pairs(
        pairs, counts, base=options[0], pseudo_counts=pseudo_counts, centre=options[1]
    )
    dense = dense_counts(pairs, counts)
    theirs = smoothed_rows(dense, base=options[0], pseudo_counts=pseudo_counts, centre=options[1])
    expected = theirs.log_rows[pairs.worker, :, pairs.label]
    np.testing.assert_allclose(ours.log_rows, expected, rtol=1e-12, atol=1e-12)
    assert ours.penalty == pytest.approx(theirs.penalty, rel=1e-12, abs=1e-12)
    if theirs.centre is not None:
        np.testing.assert_allclose(ours.centre, theirs.centre, rtol=1e-10)
    rows = SparseRows(
        pairs.keys, ours.log_rows, scale=ours.scale, base=ours.base, stranger=mean_rows(dense)
    )
    everybody = rows.matrices(np.arange(7))
    np.testing.assert_allclose(everybody[:6], theirs.rows[:6], rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(everybody[6], mean_rows(dense), rtol=1e-12)


def test_crowd_rows_are_the_mean_rows(pairs):
    counts = np.random.default_rng(2).random((len(pairs), 4))
    expected = mean_rows(dense_counts(pairs, counts))
    np.testing.assert_allclose(crowd_rows(pairs, counts), expected, rtol=1e-12)


# Rows, accuracies and information against whole matrices.


def sparse_rows(pairs, *, diagonal):
    """Rows pulled toward a base, with a right answer of their own or without."""
    rng = np.random.default_rng(3)
    counts = rng.gamma(0.5, 2.0, size=(len(pairs), 4))
    base = rng.dirichlet(np.ones(4), size=4)
    totals = pairs.by_worker(counts)
    right = rng.uniform(0.2, 0.9, size=(7, 4))
    own = np.tile(base, (7, 1, 1))
    scale = 2.0 / (totals + 2.0)
    if diagonal:
        base = base * (1 - np.eye(4))
        base /= base.sum(axis=1, keepdims=True)
        own = (1 - right)[:, :, None] * base + right[:, :, None] * np.eye(4)
    matrices = dense_counts(pairs, counts) + 2.0 * own
    matrices /= matrices.sum(axis=2, keepdims=True)
    stranger = rng.dirichlet(np.ones(4), size=4)
    matrices[6] = stranger
    rows = SparseRows(
        pairs.keys,
        np.log(matrices[pairs.worker, :, pairs.label]),
        scale=scale * (1 - right) if diagonal else scale,
        base=base,
        stranger=stranger,
        diagonal=scale * right if diagonal else None,
    )
    return rows, matrices


def coin_rows(pairs, *, per_label):
    rng = np.random.default_rng(4)
    if per_label:
        known, habit = rng.uniform(0, 0.8, size=(7, 1)), rng.dirichlet(np.ones(4), size=7)
        wrong = (1 - known) * habit
        right = known + wrong
    else:
        right = rng.uniform(0.0, 0.95, size=(7, 1))
        wrong = (1 - right) / 3
    matrices = np.where(np.eye(4) == 1, right[:, None, :], wrong[:, None, :])
    stranger = rng.dirichlet(np.ones(4), size=4)
    matrices[6] = stranger
    return CoinRows(right, wrong, stranger=stranger, silent=pairs.silent), matrices


def dense_rows(pairs):
    matrices = np.random.default_rng(5).dirichlet(np.ones(4), size=(7, 4))
    return DenseRows(matrices, matrices[6]), matrices


KINDS = {
    "sparse": lambda pairs: sparse_rows(pairs, diagonal=False),
    "sparse with a diagonal": lambda pairs: sparse_rows(pairs, diagonal=True),
    "coins": lambda pairs: coin_rows(pairs, per_label=False),
    "coins and habits": lambda pairs: coin_rows(pairs, per_label=True),
    "dense": dense_rows,
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_stand_for_the_matrices(pairs, kind):
    rows, matrices = KINDS[kind](pairs)
    np.testing.assert_allclose(rows.matrices(np.arange(7)), matrices, rtol=1e-12)
    worker, label = (axis.ravel() for axis in np.indices((8, 4)) - np.array([1, 0])[:, None, None])
    expected = np.concatenate([rows.stranger[None], matrices])[worker + 1, :, label]
    np.testing.assert_allclose(rows.at(worker, label), expected, rtol=1e-12)
    np.testing.assert_allclose(rows.right(), np.einsum("wkk->wk", matrices), rtol=1e-12)
    found = rows.information(PRIORS)
    # A sum of 16 terms of order one, some of which are added and taken off again.
    expected = [information(matrix, PRIORS) for matrix in matrices]
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_renamed_classes(pairs, kind):
    rows, matrices = KINDS[kind](pairs)
    hidden = np.array([2, 0, 3, 1])
    renamed = rows.rename_classes(hidden)
    np.testing.assert_allclose(renamed.matrices(np.arange(7)), matrices[:, hidden], rtol=1e-12)
    np.testing.assert_allclose(rows.matrices(np.arange(7)), matrices, rtol=1e-12)


# The estimators' face.


def test_the_matrix_of_one_worker_is_that_of_the_table():
    ann = bc.simulate.crowd(40, 6, 3, labels_per_task=4, seed=0).annotations
    model = bc.DawidSkene().fit(ann)
    assert "confusions_" not in vars(model)
    one = model.confusion_of(4)
    assert (one.index.name, one.columns.name) == ("true", "observed")
    pd.testing.assert_frame_equal(one, model.confusions_.loc[4])
    with pytest.raises(ValueError, match="worker 'eve' is not among the 6"):
        model.confusion_of("eve")
    with pytest.raises(NotFittedError):
        bc.DawidSkene().confusion_of(4)


def test_matrices_that_do_not_fit_are_refused_with_their_size(monkeypatch):
    ann = bc.simulate.crowd(60, 50, 30, labels_per_task=2, seed=0).annotations
    model = bc.MajorityVote().fit(ann)
    monkeypatch.setattr(memory, "available_bytes", lambda: 100e3)
    with pytest.raises(ValueError, match=r"50 workers and 30 classes: 360\.0 kB .* 100\.0 kB"):
        _ = model.confusions_
    assert model.confusion_of(3).shape == (30, 30)
    assert model.predict_proba(ann).shape == (60, 30)


def test_labels_that_do_not_fit_are_refused_before_they_are_tried(monkeypatch):
    ann = bc.simulate.crowd(60, 50, 30, labels_per_task=2, seed=0).annotations
    monkeypatch.setattr(memory, "available_bytes", lambda: 100e3)
    monkeypatch.setattr(bc.DawidSkene, "_aggregate", lambda *_: pytest.fail("it was tried"))
    # Three tables of 120 pairs and 60 tasks by 30 classes, 8 bytes each.
    with pytest.raises(ValueError, match=r"DawidSkene on 120 labels .* 129\.6 kB"):
        bc.DawidSkene().fit(ann)


def test_memory_is_read_where_the_system_says(tmp_path, monkeypatch):
    meminfo, limit = tmp_path / "meminfo", tmp_path / "memory.max"
    meminfo.write_text("MemTotal: 9 kB\nMemAvailable:    2048 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", meminfo)
    monkeypatch.setattr(memory, "_CONTROL_GROUP_LIMITS", (limit,))
    assert memory.available_bytes() == 2048 * 1024
    limit.write_text("max\n")
    assert memory.available_bytes() == 2048 * 1024
    limit.write_text("4096\n")
    assert memory.available_bytes() == 4096
    meminfo.unlink()
    limit.unlink()
    assert memory.available_bytes() > 0


# Memory grows with what was said.


def wide_crowd(n_workers, n_classes, n_tasks, per_worker):
    """Labels of workers who are right seven times in ten."""
    rng = np.random.default_rng(0)
    n_labels = n_workers * per_worker
    task = np.sort(rng.integers(n_tasks, size=n_labels))
    truth = rng.integers(n_classes, size=n_tasks)
    worker = rng.permutation(np.repeat(np.arange(n_workers), per_worker))
    guess = rng.integers(n_classes, size=n_labels)
    label = np.where(rng.random(n_labels) < 0.7, truth[task], guess)
    return bc.Annotations.from_codes(
        task, worker, label, tasks=n_tasks, workers=n_workers, classes=n_classes
    )


def peak_bytes(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model",
    [
        bc.MajorityVote(),
        bc.DawidSkene(n_iter=2),
        bc.OneCoinDawidSkene(n_iter=2),
        bc.MACE(n_iter=2),
        bc.GLAD(n_iter=2),
        bc.EmpiricalBayesDawidSkene(n_iter=2),
        bc.WorkerTypes(n_iter=2),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize(
    "crowd", [(4_000, 50, 800, 1), (60, 600, 300, 8)], ids=["many workers", "many classes"]
)
def test_memory_grows_with_the_labels(model, crowd):
    """One table of all matrices would take 80 MB, and 173 MB."""
    ann = wide_crowd(*crowd)
    n_workers, n_classes, n_tasks, per_worker = crowd

    def fit_and_predict():
        model.fit(ann)
        model.predict_proba(ann)
        model.confusion_of(0)

    # Some tables of pairs, tasks and workers by classes, and a few of classes by classes.
    table = 8 * n_classes * (n_workers * per_worker + n_tasks + n_workers)
    few = 8 * 8 * n_classes**2
    # WorkerTypes looks at whole matrices of a block of workers at a time.
    block = 10 * 8 * 2**18 if isinstance(model, bc.WorkerTypes) else 4 * 8 * 2**18
    assert peak_bytes(fit_and_predict) < 10 * table + few + block < 8 * n_workers * n_classes**2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "crowd", "most"),
    [
        (bc.MajorityVote(), (100_000, 50, 20_000, 1), 600e6),
        (bc.DawidSkene(n_iter=2, tol=0.0), (300, 1_000, 10_000, 100), 1.2e9),
        (bc.DawidSkene(n_iter=2, tol=0.0), (1_000_000, 4, 200_000, 1), 800e6),
        (bc.AutoAggregator(n_iter=2), (1_000_000, 4, 200_000, 1), 1.2e9),
    ],
)
def test_large_crowds_fit_into_little_memory(model, crowd, most):
    """Their matrices would take 2 GB, 2.4 GB and 128 MB a table, of which several are held."""
    assert peak_bytes(lambda: model.fit(wide_crowd(*crowd))) < most
