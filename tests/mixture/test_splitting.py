import numpy as np
import pytest
from scipy.special import softmax

from bayescrowd.aggregation.em import LOG_FLOOR
from bayescrowd.data.features import as_feature_table
from bayescrowd.mixture.pair_information import PairInformation
from bayescrowd.mixture.splitting import move_apart, split_direction, split_hessian

N_ITEMS = 300


class Case:
    """A mixture of `n_components` on two features with 2 and 3 values and an informative third."""

    def __init__(self, n_components, *, seed=0, missing=0.0):
        rng = np.random.default_rng(seed)
        kind = rng.integers(3, size=N_ITEMS)
        columns = [
            np.where(rng.random(N_ITEMS) < 0.7, np.minimum(kind, size - 1), rng.integers(size))
            for size in (2, 3, 3)
        ]
        self.features = [np.eye(size)[c] for size, c in zip((2, 3, 3), columns, strict=True)]
        self.features[0][rng.random(N_ITEMS) < missing] = 0.0
        self.table = np.column_stack(columns).astype(float)
        self.table[self.features[0].sum(axis=1) == 0, 0] = np.nan
        self.weights = rng.dirichlet(np.full(n_components, 5.0))
        self.profiles = [
            rng.dirichlet(np.full(f.shape[1], 5.0), n_components) for f in self.features
        ]

    def responsibilities(self, weights=None, profiles=None):
        weights = self.weights if weights is None else weights
        profiles = self.profiles if profiles is None else profiles
        scores = np.log(weights) + sum(
            feature @ np.log(profile).T
            for feature, profile in zip(self.features, profiles, strict=True)
        )
        return softmax(scores, axis=1)

    def duplicated(self, component, change):
        """Responsibilities after component k is duplicated and its twins are moved apart."""
        profiles = [np.vstack([profile, profile[component]]) for profile in self.profiles]
        for profile, part in zip(profiles, np.split(change, [2]), strict=False):
            profile[component] += part
            profile[-1] -= part
        weights = np.append(self.weights, self.weights[component])
        weights[[component, -1]] /= 2
        return self.responsibilities(weights, profiles)

    def information(self, responsibilities):
        """I(X0; X1 | Y), nats."""
        return PairInformation(as_feature_table(self.table)).matrix(responsibilities)[0, 1]

    def hessian(self, component):
        profiles = (self.profiles[0][component], self.profiles[1][component])
        return split_hessian(*self.features[:2], self.responsibilities(), component, profiles)


def tangent_directions(seed, n=4):
    """Changes that sum to zero over the values of each feature."""
    draws = np.random.default_rng(seed).normal(size=(n, 5))
    draws[:, :2] -= draws[:, :2].mean(axis=1, keepdims=True)
    draws[:, 2:] -= draws[:, 2:].mean(axis=1, keepdims=True)
    return draws / np.linalg.norm(draws, axis=1, keepdims=True)


@pytest.mark.parametrize("n_components", [1, 2, 3])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_hessian_is_that_of_finite_differences(n_components, missing):
    case = Case(n_components, seed=n_components, missing=missing)
    component = n_components - 1
    hessian = case.hessian(component)
    still = case.information(case.duplicated(component, np.zeros(5)))
    # Second differences: truncation and rounding, each about 1e-6 of the result at this width.
    width = 2e-3
    for direction in tangent_directions(n_components):
        forth, back = (
            case.information(case.duplicated(component, sign * width * direction))
            for sign in (1, -1)
        )
        difference = (forth - 2 * still + back) / width**2
        assert direction @ hessian @ direction == pytest.approx(difference, rel=2e-3, abs=1e-5)


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_duplication_changes_no_information(n_components):
    # Theorem 4, for all pairs at once.
    case = Case(n_components, seed=4)
    pairs = PairInformation(as_feature_table(case.table))
    before = pairs.matrix(case.responsibilities())
    after = pairs.matrix(case.duplicated(0, np.zeros(5)))
    np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_duplicated_component_is_a_saddle(n_components):
    case = Case(n_components, seed=5)
    still = case.information(case.responsibilities())
    width = 1e-3
    for direction in tangent_directions(5):
        # Moved apart or moved apart the other way round: the same mixture, hence no slope.
        forth, back = (
            case.information(case.duplicated(0, sign * width * direction)) for sign in (1, -1)
        )
        assert forth == pytest.approx(back, rel=1e-9)
    profiles = (case.profiles[0][0], case.profiles[1][0])
    found = split_direction(*case.features[:2], case.responsibilities(), 0, profiles)
    assert found.curvature < 0
    change = np.concatenate([found.first, found.second])
    assert case.information(case.duplicated(0, 0.02 * change)) < still
    curvatures = np.linalg.eigvalsh(case.hessian(0))
    assert curvatures[0] == pytest.approx(found.curvature)
    assert curvatures[-1] > -1e-12  # down in one direction, not down in another


def test_direction_sums_to_zero_and_has_length_one():
    case = Case(2, seed=6)
    profiles = (case.profiles[0][1], case.profiles[1][1])
    found = split_direction(*case.features[:2], case.responsibilities(), 1, profiles)
    assert found.first.sum() == pytest.approx(0, abs=1e-12)
    assert found.second.sum() == pytest.approx(0, abs=1e-12)
    assert np.square(found.first).sum() + np.square(found.second).sum() == pytest.approx(1)


def test_binary_pair_by_hand():
    # One component, uniform margins, P(equal) = (1 + c) / 2: with e = a x_i + b x_j (x = +-1),
    # 1/2 (Var e - Var E[e | Xi] - Var E[e | Xj]) = -1/2 c (2 a b + c (a^2 + b^2)).
    c = 0.6
    cells = {(0, 0): 80, (1, 1): 80, (0, 1): 20, (1, 0): 20}
    codes = np.repeat(list(cells), list(cells.values()), axis=0)
    first, second = np.eye(2)[codes[:, 0]], np.eye(2)[codes[:, 1]]
    fair = np.array([0.5, 0.5])
    hessian = split_hessian(first, second, np.ones((200, 1)), 0, (fair, fair))
    for a, b in ((1.0, 0.0), (1.0, 1.0), (0.3, -0.8)):
        change = 0.5 * np.array([a, -a, b, -b])
        expected = -c * (2 * a * b + c * (a**2 + b**2))
        assert change @ hessian @ change == pytest.approx(expected, rel=1e-9)
    found = split_direction(first, second, np.ones((200, 1)), 0, (fair, fair))
    np.testing.assert_allclose(np.concatenate(found[:2]), [0.5, -0.5, 0.5, -0.5], atol=1e-9)


def test_values_that_the_component_lacks_stay_away():
    first = np.eye(3)[[0, 0, 1, 1, 2, 0]]
    second = np.eye(2)[[0, 0, 1, 1, 1, 1]]
    own = np.array([1.0, 1.0, 1.0, 1.0, 0.0, 1.0])
    responsibilities = np.column_stack([own, 1 - own])
    profiles = (np.array([0.6, 0.4, 0.0]), np.array([0.4, 0.6]))
    found = split_direction(first, second, responsibilities, 0, profiles)
    assert found.first[2] == pytest.approx(0, abs=1e-12)
    assert found.curvature < 0


@pytest.mark.parametrize("coordinates", ["probability", "fisher"])
@pytest.mark.parametrize("absent", [np.exp(LOG_FLOOR), 1e-8])
def test_values_with_floored_probabilities_stay_away(coordinates, absent):
    # What EM hands over for a value that nobody shows is the exponential of a floored logarithm,
    # or the share of a pseudo-count, and never zero.
    codes = np.repeat([(0, 0), (1, 1), (0, 1), (1, 0)], [80, 80, 20, 20], axis=0)
    first, second = np.eye(3)[codes[:, 0]], np.eye(2)[codes[:, 1]]
    profiles = (np.array([0.5, 0.5 - absent, absent]), np.array([0.5, 0.5]))
    one = np.ones((200, 1))
    found = split_direction(first, second, one, 0, profiles, coordinates=coordinates)
    assert found.first[2] == 0
    without = split_direction(
        first[:, :2], second, one, 0, (profiles[1], profiles[1]), coordinates=coordinates
    )
    np.testing.assert_allclose(found.first[:2], without.first, atol=1e-6)
    np.testing.assert_allclose(found.second, without.second, atol=1e-6)
    assert found.curvature == pytest.approx(without.curvature, rel=1e-6)


def test_items_that_all_but_left_show_no_value():
    # The items with the third value belong to the other component, up to 1e-200.
    codes = np.repeat([(0, 0), (1, 1), (0, 1), (1, 0), (2, 1)], [80, 80, 20, 20, 50], axis=0)
    own = np.where(codes[:, 0] == 2, 1e-200, 1.0)
    responsibilities = np.column_stack([own, 1 - own])
    profiles = (np.array([0.5, 0.5, 5e-201]), np.array([0.5, 0.5]))
    found = split_direction(
        np.eye(3)[codes[:, 0]], np.eye(2)[codes[:, 1]], responsibilities, 0, profiles
    )
    np.testing.assert_allclose(np.concatenate(found[:2]), [0.5, -0.5, 0, 0.5, -0.5], atol=1e-9)


def test_no_value_that_could_move():
    codes = np.repeat([(0, 0)], 20, axis=0)
    profiles = (np.array([1.0, np.exp(LOG_FLOOR)]),) * 2
    coin = np.eye(2)[codes[:, 0]]
    found = split_direction(coin, coin, np.ones((20, 1)), 0, profiles)
    assert np.concatenate(found[:2]).tolist() == [0, 0, 0, 0]


def test_a_coincidence_of_rare_values_attracts_the_papers_coordinates_only():
    # 5 of 1000 items have the third value of either feature, and 1 has both: a correlation of 0.2,
    # against 0.6 of the first two values.
    cells = {(0, 0): 393, (1, 1): 393, (0, 1): 103, (1, 0): 102, (2, 2): 1, (2, 0): 4, (0, 2): 4}
    codes = np.repeat(list(cells), list(cells.values()), axis=0)
    first, second = np.eye(3)[codes[:, 0]], np.eye(3)[codes[:, 1]]
    profiles = (first.mean(axis=0), second.mean(axis=0))
    one = np.ones((1000, 1))
    plain = split_direction(first, second, one, 0, profiles)
    fisher = split_direction(first, second, one, 0, profiles, coordinates="fisher")
    # The largest change that the two values allow: d = (-1, -1, 2) / sqrt(12) on either feature.
    assert abs(plain.first[2]) == pytest.approx(2 / np.sqrt(12), rel=0.05)
    assert abs(fisher.first[2]) < 2 * profiles[0][2]
    # -(c + c^2) for two features of correlation c, worked as for the binary pair above: at least
    # -2 in Fisher's coordinates, whatever the values' frequencies.
    c = 1 - 2 * 205 / 991
    assert fisher.curvature == pytest.approx(-(c + c**2), rel=0.02)
    assert plain.curvature < -20


def test_hessian_in_fishers_coordinates_is_that_of_finite_differences():
    case = Case(2, seed=7)
    profiles = (case.profiles[0][1], case.profiles[1][1])
    roots = np.sqrt(np.concatenate(profiles))
    responsibilities = case.responsibilities()
    hessian = split_hessian(*case.features[:2], responsibilities, 1, profiles, coordinates="fisher")
    still = case.information(case.duplicated(1, np.zeros(5)))
    width = 2e-3
    for change in tangent_directions(7):
        forth, back = (
            case.information(case.duplicated(1, sign * width * change)) for sign in (1, -1)
        )
        difference = (forth - 2 * still + back) / width**2
        coordinate = change / roots
        assert coordinate @ hessian @ coordinate == pytest.approx(difference, rel=2e-3, abs=1e-5)
    found = split_direction(*case.features[:2], responsibilities, 1, profiles, coordinates="fisher")
    change = np.concatenate(found[:2])
    assert np.square(change / roots).sum() == pytest.approx(1)
    assert found.first.sum() == pytest.approx(0, abs=1e-12)


def test_independent_pair_has_no_direction_down():
    codes = np.array([(a, b) for a in range(2) for b in range(3)] * 5)
    first, second = np.eye(2)[codes[:, 0]], np.eye(3)[codes[:, 1]]
    profiles = (np.full(2, 1 / 2), np.full(3, 1 / 3))
    found = split_direction(first, second, np.ones((30, 1)), 0, profiles)
    assert found.curvature == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("step", [0.1, 5.0])
def test_twins_stay_on_the_simplex_and_average_to_their_parent(step):
    profile, change = np.array([0.2, 0.3, 0.5]), np.array([0.6, -0.8, 0.2])
    forth, back = move_apart(profile, change, step)
    for twin in (forth, back):
        assert (twin > 0).all()
        assert twin.sum() == pytest.approx(1)
    np.testing.assert_allclose((forth + back) / 2, profile, rtol=1e-12)
    if step == 0.1:
        np.testing.assert_allclose(forth, profile + 0.1 * change, rtol=1e-12)
