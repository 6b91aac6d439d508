"""Workers' own rows: who has some, how they read labels, and what they are worth."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import bayescrowd as bc
from bayescrowd.budgeted.beliefs.access_path import RIGHT, AccessPathBelief
from bayescrowd.budgeted.beliefs.worker_rows import FEWEST_LABELS, WorkerRows
from bayescrowd.budgeted.evaluation.table_crowd import assign_workers, noisy_labels
from bayescrowd.models import access_path

SPACE = bc.FeatureSpace(classes=["p", "q"], features={"x": ["a", "b", "c"], "y": ["u", "v"]})
POOLED = RIGHT._replace(pooling=8.0)


def nobody(n_values=2):
    return WorkerRows.before_answers(8.0, 3, n_chains=2, n_values=n_values)


def test_workers_with_enough_labels_get_a_group():
    rows = nobody()
    for reading in range(FEWEST_LABELS):
        assert rows.groups == {}
        rows = rows.add(reading, (0, 1, 1), (7, -1, 3))
    assert rows.groups == {7: 1, 3: 2}
    assert rows.own.shape == (2, 4, 2, 2)
    for worker in range(20, 25):
        for reading in range(FEWEST_LABELS):
            rows = rows.add(FEWEST_LABELS + reading, (1,), (worker,))
    assert rows.groups == {7: 1, 3: 2, 20: 3, 21: 4, 22: 5, 23: 6, 24: 7}
    assert rows.own.shape == (2, 16, 2, 2)


def test_labels_are_counted_by_group():
    rows = nobody()
    for reading in range(FEWEST_LABELS):
        rows = rows.add(reading, (0, 1, 1), (7, -1, 3 if reading else 9))
    counts = np.tile(np.float32([1, 2]), (FEWEST_LABELS, 1))
    by_group = rows.counts_by_group(counts).reshape(FEWEST_LABELS, -1, 2)
    np.testing.assert_array_equal(by_group.sum(axis=1), counts)
    # worker 3 lacks a label, so that only worker 7 has a group
    np.testing.assert_array_equal(by_group[:, 0], [[0, 2]] * FEWEST_LABELS)
    np.testing.assert_array_equal(by_group[:, 1], [[1, 0]] * FEWEST_LABELS)


def test_without_names_or_enough_labels_nothing_is_different():
    shared, pooled = AccessPathBelief(SPACE, 3), AccessPathBelief(SPACE, 3, POOLED)
    for i in range(FEWEST_LABELS - 1):
        shared = shared.observe(0, i % 2, (0, i % 2, 0))
        pooled = pooled.observe(0, i % 2, (0, i % 2, 0), (0, 1, -1))
    np.testing.assert_array_equal(shared.mean(), pooled.mean())
    one, other = (b.draw(np.random.default_rng(0)) for b in (shared, pooled))
    np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def learned():
    """Worker 0 is right, worker 1 answers at random; class p has the value a, class q b or c."""
    rng, belief = np.random.default_rng(0), AccessPathBelief(SPACE, 2, POOLED)
    for i in range(40):
        value = 0 if i % 2 == 0 else int(rng.integers(1, 3))
        said = (value, int(rng.integers(3))) if i < 36 else (value,)
        belief = belief.observe(0, i % 2, said, (0, 1)[: len(said)])
    return belief


def test_labels_are_read_by_the_rows_of_their_workers(learned):
    reader = learned.reader(0, np.array([2, 0, 1]), "mean")
    labels = np.array([[0, 1], [2, 2], [1, -1], [-1, -1], [0, 2]])
    workers = np.array([[0, 1], [1, -1], [5, -1], [-1, -1], [8, 9]])
    found = reader.of_workers(labels, workers)
    group = {0: 1, 1: 2}
    for row in (0, 1):
        said = reader.log_conditional.copy()
        for label, worker in zip(labels[row], workers[row], strict=True):
            said += reader.log_groups[:, group.get(worker, 0), :, label][:, None]
        by_draw = logsumexp(said, axis=2)
        expected = logsumexp(by_draw, axis=0) - np.log(len(by_draw))
        np.testing.assert_allclose(found[row], expected, rtol=1e-9)
    # workers of whom nothing is known are read as before; no label says nothing
    np.testing.assert_array_equal(found[2:], reader.log_likelihood(labels)[2:])
    np.testing.assert_allclose(found[3], 0, atol=1e-12)


def test_a_good_worker_says_more_than_a_bad_one(learned):
    reader = learned.reader(0, np.arange(3), "mean")
    said = reader.of_workers(np.array([[0], [0], [0]]), np.array([[0], [-1], [1]]))
    good, unknown, bad = said[:, 0] - said[:, 1]
    assert good > unknown > bad
    assert good > 1.5  # odds of more than four to one
    assert abs(bad) < 1


def test_the_mode_of_own_rows_is_refused(learned):
    with pytest.raises(ValueError, match="estimate='map': the mode is known for matrices that all"):
        learned.reader(0, np.arange(3), "map")


def test_a_known_table_is_learned_after_named_answers(learned):
    belief = learned.observe_all(np.array([0, 1]), np.array([[[0, 0], [0, 0]], [[1, 1], [1, 1]]]))
    assert belief.features[0].n_readings == 42
    assert belief.features[0].workers.groups == {0: 1, 1: 2}


OPTIONS = [
    ({"worker_parameters": "own"}, "majority of the labels, whoever gave them; expected 'shared'"),
    ({"worker_prior": "uniform"}, "majority of the labels, whoever gave them; expected 'right'"),
    ({"worker_prior": "wrong", "model": "access_path"}, "worker_prior='wrong'"),
    ({"worker_parameters": "mine", "model": "access_path"}, "worker_parameters='mine'"),
    (
        {"worker_prior": RIGHT._replace(right=np.ones(2)), "model": "access_path"},
        "expected one number for all features",
    ),
    (
        {"worker_parameters": "own", "model": "access_path", "sampler": "nuts"},
        "sampler='nuts' draws from the model in which all workers share",
    ),
]


@pytest.mark.parametrize(("options", "message"), OPTIONS, ids=[m for _, m in OPTIONS])
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        bc.TsGreedy(SPACE, 30, 1, **options)


@pytest.mark.parametrize("kind", [bc.RoundRobin, bc.BudgetedSelection])
def test_policies_learn_who_answers(kind):
    policy = kind(
        SPACE, 90, 1, model="access_path", labels_per_query=3, worker_parameters="own", seed=1
    )
    crowd = ["Ann", "Bob", "Cy"]
    while (query := policy.ask()) is not None:
        right = {"x": "a" if query.target == "p" else "b", "y": "u"}[query.feature]
        wrong = {"x": "b" if query.target == "p" else "a", "y": "u"}[query.feature]
        policy.tell(query, [right, right, wrong], workers=crowd)
    assert policy.state.workers == {"Ann": 0, "Bob": 1, "Cy": 2}
    assert policy.result().history["workers"].map(list).to_list()[0] == crowd
    again = kind(
        SPACE, 90, 1, model="access_path", labels_per_query=3, worker_parameters="own", seed=1
    ).replay(policy.events)
    assert again.events == policy.events
    classifier = policy.result().classifier
    assert classifier.features == ("x",)
    # two labels that contradict each other, by a good worker and by one who is always wrong
    instances = pd.DataFrame({"x": [["a", "b"], ["a", "b"], ["a", "b"], ["b"]]})
    givers = pd.DataFrame({"x": [["Ann", "Cy"], ["Cy", "Ann"], ["Di", None], ["Cy"]]})
    known = classifier.predict_proba(instances, givers)["p"]
    unknown = classifier.predict_proba(instances)["p"]
    assert known[0] > unknown[0] > known[1]
    assert known[2] == pytest.approx(unknown[2])
    assert known[3] > unknown[3]
    pd.testing.assert_frame_equal(
        again.result().classifier.predict_proba(instances, givers),
        classifier.predict_proba(instances, givers),
    )
    parts = classifier.contributions(instances, target="p", against="q", workers=givers)
    np.testing.assert_allclose(parts.sum(axis=1), np.log(known / (1 - known)), rtol=1e-6)
    with pytest.raises(ValueError, match=r"row 0, column 'x': 1 worker for 2 labels"):
        classifier.predict(instances, givers.assign(x=[["Ann"]] * 4))
    with pytest.raises(ValueError, match="expected a table with the index of the instances"):
        classifier.predict(instances, givers.iloc[:2])


def test_the_papers_prior_is_uniform():
    policy = bc.RoundRobin(SPACE, 30, 1, model="access_path", worker_prior="uniform")
    prior = policy.state.belief.features[0].prior
    assert (prior.confusion[:2, :2] == 1).all()
    own = access_path.Prior(right=9.0, wrong=2.0)
    policy = bc.RoundRobin(SPACE, 30, 1, model="access_path", worker_prior=own)
    assert policy.state.belief.features[0].prior.confusion[0, :2].tolist() == [9, 2]


def paired_errors(seed, rates):
    """Test errors with shared and with own rows, from the same purchases; workers are known."""
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 2, 1_200)
    rows = np.array([[0.8, 0.15, 0.05], [0.1, 0.2, 0.7]]).cumsum(axis=1)[target]
    values = (rng.random((1_200, 3, 1)) > rows[:, None, :-1]).sum(axis=2)
    names = ["x0", "x1", "x2"]
    train = pd.DataFrame(values[:400], columns=names).assign(kind=target[:400])
    space = bc.FeatureSpace.from_table(train, target="kind")
    givers = assign_workers(rng, (800, 3, 3), len(rates))
    labels = noisy_labels(
        rng, values[400:], (3, 3, 3), n_labels=3, noise="uniform", rate=np.array(rates)[givers]
    )
    instances, workers = (
        pd.DataFrame({name: [*map(list, table[:, f])] for f, name in enumerate(names)})
        for table in (labels, np.char.add("worker ", (givers + 1).astype(str)).astype(object))
    )
    errors = []
    for worker_parameters in ("shared", "own"):
        policy = bc.RoundRobin(
            space,
            360,
            2,
            model="access_path",
            labels_per_query=3,
            worker_parameters=worker_parameters,
            seed=seed,
        )
        found = bc.simulate_budget(
            policy, train, target="kind", noise="uniform", worker_rates=rates, seed=seed
        )
        said = found.classifier.predict(instances, workers).to_numpy()
        errors.append(float((said != target[400:]).mean()))
    return errors


def difference(n_seeds, rates):
    """Mean of own minus shared errors, and its standard error."""
    errors = np.array([paired_errors(seed, rates) for seed in range(n_seeds)])
    gains = errors[:, 1] - errors[:, 0]
    return gains.mean(), gains.std(ddof=1) / np.sqrt(n_seeds)


def test_own_rows_are_worth_it_where_workers_differ():
    # five workers who are right and five who answer at random: errors of .21 and .17
    mean, error = difference(5, [0.05] * 5 + [0.67] * 5)
    assert mean < -2 * error
    assert mean < -0.02


@pytest.mark.slow
def test_own_rows_cost_nothing_where_workers_are_alike():
    mean, error = difference(24, [0.3] * 10)
    assert mean < 2 * error


def test_simulated_workers():
    givers = assign_workers(np.random.default_rng(0), (2_000, 1, 2), 4)
    assert (givers[..., 0] != givers[..., 1]).all()
    # 4,000 labels: a worker's share of 1/4 has a standard error below .007
    np.testing.assert_allclose(np.bincount(givers.ravel()) / 4_000, 0.25, atol=4 * 0.007)
    with pytest.raises(ValueError, match="2 workers for 3 labels of a cell"):
        assign_workers(np.random.default_rng(0), (1, 1, 3), 2)
    frame = pd.DataFrame({"x": ["a", "b"] * 20, "kind": ["p", "q"] * 20})
    policy = bc.RoundRobin(
        bc.FeatureSpace.from_table(frame, target="kind"), 20, 1, labels_per_query=2
    )
    with pytest.raises(ValueError, match=r"rate=0\.1 and worker_rates: expected one of the two"):
        bc.simulate_budget(policy, frame, target="kind", rate=0.1, worker_rates=[0.0, 0.5])
    result = bc.simulate_budget(
        policy, frame, target="kind", noise="biased", worker_rates=[0.0, 1.0]
    )
    # worker 2 is always wrong
    for _, query in result.history.iterrows():
        right = {"p": "a", "q": "b"}[query["target"]]
        said = dict(zip(query["workers"], query["answers"], strict=True))
        assert said["worker 1"] == right != said["worker 2"]
