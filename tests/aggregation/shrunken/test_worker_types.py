"""Worker types against loops, their NumPyro model and planted types."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import softmax

import bayescrowd as bc
from bayescrowd.aggregation.shrunken.type_mixture import TypeBase, WorkerTypesModel
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.models import worker_types


def planted(seed=0, n_tasks=300):
    """Twenty good workers and ten who say class 0 to three tasks in four."""
    good = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    lazy = np.full((3, 3), 0.125) + np.array([0.625, 0.0, 0.0])
    confusions = np.stack([good] * 20 + [lazy] * 10)
    return bc.simulate.full_confusion_crowd(
        n_tasks, 30, 3, confusions=confusions, labels_per_task=6, seed=seed
    )


def test_rows_by_hand():
    base = TypeBase(
        matrices=np.array([[[0.9, 0.2], [0.1, 0.8]], [[0.5, 0.5], [0.5, 0.5]]]),
        share=np.array([0.25, 0.75]),
        membership=np.array([[1.0, 0.0], [0.5, 0.5]]),
        strength=8.0,
    )
    rows = base.rows(np.array([0, 1, -1]), np.array([0, 0, 1]))
    np.testing.assert_allclose(rows, [[0.9, 0.2], [0.7, 0.35], [0.4, 0.575]])


def test_memberships_and_rows_are_those_of_the_numpyro_model():
    ann = planted().annotations
    est = bc.WorkerTypes(n_iter=12, tol=0.0).fit(ann)
    found, pairs = est._found, WorkerLabelPairs(ann)
    counts = np.zeros((30, 3, 3))
    counts[pairs.worker, :, pairs.label] = found.counts
    model = WorkerTypesModel()
    again = model.base(pairs, found.counts, found.base)
    joint = worker_types.type_log_joint(
        jnp.asarray(found.base.share),
        jnp.asarray(found.base.matrices.transpose(0, 2, 1)),
        jnp.asarray(counts),
    )
    # Single precision, on sums of some thirty terms.
    np.testing.assert_allclose(again.membership, softmax(joint, axis=1), atol=1e-3)
    # Rows are the means of Dirichlet posteriors around the mean of the types' matrices.
    mean = np.einsum("wg,glk->wkl", found.base.membership, found.base.matrices)
    rows = (counts + 8 * mean) / (counts.sum(axis=2, keepdims=True) + 8)
    np.testing.assert_allclose(est.confusions_.to_numpy().reshape(30, 3, 3), rows, rtol=1e-9)
    params = worker_types.Params(
        prevalence=jnp.asarray(est.priors_.to_numpy()),
        weight=jnp.asarray(found.base.share),
        types=jnp.asarray(found.base.matrices.transpose(0, 2, 1)),
        confusion=jnp.asarray(rows),
    )
    codes = map(jnp.asarray, (ann.task_codes, ann.worker_codes, ann.label_codes))
    probas = worker_types.label_posterior(params, worker_types.Labels(*codes), n_items=300)
    np.testing.assert_allclose(est.probas_, probas, atol=2e-5)


def test_planted_types_are_found():
    est = bc.WorkerTypes(n_types=2).fit(planted().annotations)
    assert (est.membership_[0][20:] > 0.9).all()
    assert (est.membership_[1][:20] > 0.9).all()
    # 600 labels of lazy workers on about 200 tasks a class: standard errors of .03, so .12 is four.
    lazy = est.types_.loc[0].to_numpy()
    np.testing.assert_allclose(lazy[:, 0], 0.75, atol=0.12)


def test_control_shuffled_labels_have_no_types():
    frame = planted().annotations.to_frame()
    frame["label"] = np.random.default_rng(0).permutation(frame["label"].to_numpy())
    est = bc.WorkerTypes(n_types=2, n_iter=30, tol=0.0).fit(frame)
    assert not (est.membership_[0][20:] > 0.9).all()


def test_types_do_not_depend_on_the_order_of_workers():
    frame = planted(n_tasks=80).annotations.to_frame()
    renamed = frame.assign(worker=99 - frame["worker"])
    one, other = (bc.WorkerTypes(n_iter=15, tol=0.0).fit(table) for table in (frame, renamed))
    np.testing.assert_allclose(one.membership_, other.membership_.iloc[::-1], atol=1e-8)
    np.testing.assert_allclose(one.types_, other.types_, atol=1e-8)


@pytest.mark.parametrize(("name", "error"), [("bluebird", 10.19), ("rte", 7.5), ("dog", 15.99)])
def test_errors_on_public_crowds(published, name, error):
    data = published(name)
    model = bc.WorkerTypes().fit(data.annotations)
    assert 100 * bc.metrics.error_rate(model.probas_, data.truth) < error + 0.005


@pytest.mark.slow
def test_labels_agree_with_draws_from_the_posterior():
    data = bc.simulate.crowd(100, 10, 2, labels_per_task=6, accuracy=0.8, seed=0)
    est = bc.WorkerTypes().fit(data.annotations)
    post = est.posterior(method="nuts", chains=1, draws=200, warmup=200, progress=False)
    probas = bc.label_posterior(post)
    clear = (est.probas_.max(axis=1) > 0.9) & (probas.max(axis=1) > 0.9)
    assert clear.mean() > 0.7
    assert (est.labels_ == probas.idxmax(axis=1))[clear].all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_types": 0}, "n_types=0: expected at least 1"),
        ({"strength": np.inf}, "strength=inf: expected a finite number above 0"),
        ({"prior": "flat"}, "prior='flat': expected one of shares, learned, uniform"),
    ],
)
def test_bad_parameters(parameters, message):
    ann = bc.Annotations.from_matrix([list("ab"), list("bb")])
    with pytest.raises(ValueError, match=message):
        bc.WorkerTypes().set_params(**parameters).fit(ann)
