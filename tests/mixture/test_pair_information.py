import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

import bayescrowd as bc
from bayescrowd.data.features import as_feature_table
from bayescrowd.information import conditional_mutual_information
from bayescrowd.mixture import pair_information
from bayescrowd.mixture.co_occurrence import CoOccurrences
from bayescrowd.mixture.pair_information import PairInformation, _reduce, scan_cost


def mixed_table(seed=0, n_items=200, missing=0.0):
    """Features with 2, 3, 4, 2 and 1 values, the first three dependent."""
    rng = np.random.default_rng(seed)
    base = rng.integers(4, size=n_items)
    noisy = np.where(rng.random((n_items, 3)) < 0.7, base[:, None], rng.integers(4, size=(1, 3)))
    table = pd.DataFrame(
        {
            "two": noisy[:, 0] // 2,
            "three": np.minimum(noisy[:, 1], 2),
            "four": noisy[:, 2],
            "coin": rng.integers(2, size=n_items),
            "constant": np.zeros(n_items, dtype=int),
        }
    ).astype(object)
    return table.mask(rng.random(table.shape) < missing)


def random_responsibilities(n_items, n_components, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(n_components, 0.5), size=n_items)


def co_present_information(table, responsibilities):
    """The definition, pair by pair and component by component."""
    n_components = responsibilities.shape[1]
    out = np.zeros((n_components, table.shape[1], table.shape[1]))
    for i in range(table.shape[1]):
        for j in range(table.shape[1]):
            both = (table.iloc[:, i].notna() & table.iloc[:, j].notna()).to_numpy()
            for k in range(n_components):
                weights = pd.Series(responsibilities[both, k])
                left, right = (table.iloc[both, f].reset_index(drop=True) for f in (i, j))
                joint = weights.groupby([left, right]).sum().unstack(fill_value=0.0).to_numpy()
                independent = np.outer(joint.sum(1), joint.sum(0)) / joint.sum()
                occurs = joint > 0
                terms = joint[occurs] * np.log(joint[occurs] / independent[occurs])
                out[k, i, j] = 0.0 if i == j else terms.sum() / len(table)
    return out


def test_two_equal_coins_by_hand():
    table = as_feature_table(np.array([[0, 0], [0, 0], [1, 1], [1, 1]]))
    scan = PairInformation(table).scan(np.ones((4, 1)))
    assert (scan.first, scan.second, scan.component) == (0, 1, 0)
    for value in (scan.value, scan.max_norm, scan.total):
        assert value == pytest.approx(np.log(2), rel=1e-12)


def test_component_that_explains_its_items_is_passed_over():
    table = as_feature_table(np.array([[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [0, 0]]))
    responsibilities = np.repeat([[1.0, 0.0], [0.0, 1.0]], [2, 4], axis=0)
    scan = PairInformation(table).scan(responsibilities)
    assert scan.component == 1
    assert scan.max_norm == pytest.approx(scan.value * 4 / 6, rel=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("n_components", [1, 3])
def test_scan_and_matrix_follow_the_definition(missing, n_components):
    frame = mixed_table(1, missing=missing)
    responsibilities = random_responsibilities(len(frame), n_components)
    expected = co_present_information(frame, responsibilities)
    pairs = PairInformation(as_feature_table(frame))
    np.testing.assert_allclose(
        pairs.matrix(responsibilities), expected.sum(axis=0), rtol=1e-9, atol=1e-12
    )
    scan = pairs.scan(responsibilities)
    given = expected / responsibilities.mean(axis=0)[:, None, None]
    assert scan.value == pytest.approx(given.max(), rel=1e-9)
    assert given[scan.component, scan.first, scan.second] == pytest.approx(given.max(), rel=1e-9)
    assert scan.max_norm == pytest.approx(expected.sum(axis=0).max(), rel=1e-9)
    assert scan.total == pytest.approx(expected.sum() / 2, rel=1e-9)


def test_agrees_with_the_papers_estimator_on_complete_features():
    table = as_feature_table(mixed_table(2))
    responsibilities = random_responsibilities(200, 3)
    expected = conditional_mutual_information(table, responsibilities)
    found = PairInformation(table).matrix(responsibilities)
    np.testing.assert_allclose(found, expected.total, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_components", [1, 2, 4])
@pytest.mark.parametrize("repeated", [False, True])
def test_blocks_and_listing_change_nothing(monkeypatch, n_components, repeated):
    frame = mixed_table(3, missing=0.1)
    table = as_feature_table(frame)
    if repeated:
        long = bc.simulate.crowd(80, 12, 3, labels_per_task=4, seed=0).annotations.to_frame()
        other = long.head(60).assign(label=(long["label"].head(60) + 1) % 3)
        table = as_feature_table(bc.Annotations.from_frame(pd.concat([long, other])))
    responsibilities = random_responsibilities(table.n_items, n_components)
    found = []
    for is_listed in (True, False):
        cost = scan_cost(table, 2)._replace(is_listed=is_listed)
        monkeypatch.setattr(pair_information, "scan_cost", lambda *_, cost=cost: cost)
        found.append(PairInformation(table))
    monkeypatch.setattr(pair_information, "_BLOCK_CELLS", 1)
    monkeypatch.setattr(pair_information, "_DENSE_ITEMS", 7)
    found.append(PairInformation(table))
    expected = found[0].matrix(responsibilities)
    for pairs in found[1:]:
        np.testing.assert_allclose(pairs.matrix(responsibilities), expected, rtol=1e-9, atol=1e-12)
        for level in (0.0, 0.05):
            one, other = (p.scan(responsibilities, level=level) for p in (found[0], pairs))
            assert other[:3] == one[:3]
            assert other[3:] == pytest.approx(one[3:], rel=1e-9)


def test_listed_pairs_are_those_with_a_common_item():
    crowd = bc.simulate.crowd(60, 40, 3, labels_per_task=3, seed=1).annotations
    met = CoOccurrences(as_feature_table(crowd))
    frame = crowd.to_frame()
    pairs = frame.merge(frame, on="task").query("worker_x < worker_y")
    expected = sorted(set(zip(pairs["worker_x"], pairs["worker_y"], strict=True)))
    assert list(zip(met.first.tolist(), met.second.tolist(), strict=True)) == expected


def test_features_that_never_meet_have_no_entry():
    table = as_feature_table(np.array([[0, np.nan], [1, np.nan], [np.nan, 0], [np.nan, 1]]))
    assert scan_cost(table, 2).is_listed
    scan = PairInformation(table).scan(np.ones((4, 1)))
    assert scan[3:] == (0.0, 0.0, 0.0)
    assert PairInformation(table).matrix(np.ones((4, 1))).tolist() == [[0, 0], [0, 0]]


def test_cost_of_few_meetings_does_not_grow_with_the_square_of_workers():
    few, many = (
        scan_cost(
            as_feature_table(bc.simulate.crowd(n, n, 2, labels_per_task=5, seed=0).annotations), 2
        )
        for n in (500, 4000)
    )
    assert few.is_listed
    assert many.is_listed
    assert many.n_pairs == 4000 * 10  # five workers form ten pairs
    assert many.seconds == pytest.approx(8 * few.seconds)
    assert many.memory == 8 * few.memory
    assert many.memory < 2**23


def test_reduced_matrix_loses_nothing():
    table = as_feature_table(mixed_table(4).assign(four=mixed_table(4, missing=0.2)["four"]))
    base, expansion = _reduce(table)
    np.testing.assert_allclose((base @ expansion).toarray(), table.matrix.toarray(), atol=1e-12)
    # One value of each of the four complete features is spared, and a column of ones is added.
    assert base.shape[1] == table.n_symbols - 4 + 1


def test_the_cheaper_way_is_taken():
    crowd = bc.simulate.crowd(300, 50, labels_per_task=3, seed=0).annotations
    assert isinstance(PairInformation(as_feature_table(crowd))._listed, CoOccurrences)
    full = bc.simulate.crowd(300, 10, seed=0).annotations
    assert PairInformation(as_feature_table(full))._listed is None


def test_twice_judged_tasks_count_once():
    ann = bc.Annotations.from_frame(
        pd.DataFrame(
            {
                "task": [0, 0, 0, 1, 1, 2, 2],
                "worker": ["a", "a", "b", "a", "b", "a", "b"],
                "label": ["x", "y", "x", "x", "x", "y", "y"],
            }
        )
    )
    joint = np.array([[1.5, 0.0], [0.5, 1.0]]) / 3
    expected = np.sum(
        joint[joint > 0] * np.log((joint / np.outer(joint.sum(1), joint.sum(0)))[joint > 0])
    )
    scan = PairInformation(as_feature_table(ann)).scan(np.ones((3, 1)))
    assert scan.value == pytest.approx(expected, rel=1e-9)


def test_level_lets_in_what_a_chi_square_test_does():
    frame = mixed_table(5)
    table = as_feature_table(frame)
    pairs = PairInformation(table)
    one = np.ones((len(frame), 1))
    assert pairs.scan(one, level=0.05)[:3] == pairs.scan(one)[:3]
    alone = as_feature_table(frame[["two", "coin"]])
    statistic = 2 * len(frame) * PairInformation(alone).scan(one).value
    p_value = chi2.sf(statistic, 1)  # of the only pair there is
    assert PairInformation(alone).scan(one, level=p_value * 1.01).value > 0
    assert PairInformation(alone).scan(one, level=p_value * 0.99).value == 0


def test_noise_is_kept_out_as_often_as_the_level_says():
    # 200 tables of independent coins at level 0.2: 40 expected, standard deviation 5.7, k = 4.
    rng = np.random.default_rng(0)
    n_let_in = 0
    for _ in range(200):
        table = as_feature_table(rng.integers(2, size=(200, 8)))
        n_let_in += PairInformation(table).scan(np.ones((200, 1)), level=0.2).value > 0
    assert 40 - 4 * 5.7 < n_let_in < 40 + 4 * 5.7


def test_equal_entries_are_told_by_their_order():
    column = np.arange(8) % 2
    table = as_feature_table(np.column_stack([np.arange(8) // 4, column, column, column]))
    assert PairInformation(table).scan(np.ones((8, 1)))[:3] == (1, 2, 0)


def test_component_without_items_has_no_entry():
    table = as_feature_table(mixed_table(6))
    responsibilities = np.column_stack([np.ones(200), np.zeros(200)])
    scan = PairInformation(table).scan(responsibilities)
    assert scan.component == 0
    assert np.isfinite(scan.value)
