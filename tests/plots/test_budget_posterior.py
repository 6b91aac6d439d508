"""Pictures of what a policy knows show the draws that they are made of."""

import numpy as np
import pytest
from scipy.stats import beta

import bayescrowd as bc
from bayescrowd import plots
from bayescrowd.posterior.container import assemble, dataset_of

SPACE = bc.FeatureSpace(
    classes=["p", "q"], features={"x": ["a", "b"], "y": ["a", "b"], "z": ["a", "b", "c"]}
)
YES = {"feature_value": "x=a"}


def container(a, b, n_draws=2000):
    """Draws of a row of two probabilities, in two chains."""
    draws = np.random.default_rng(5).dirichlet([a, b], size=(2, n_draws))
    table = {"conditional": (("chain", "draw", "feature_value"), draws)}
    ids = {"feature_value": ["x=a", "x=b"]}
    return assemble({"posterior": dataset_of(table, coords=ids)})


@pytest.fixture(scope="module")
def policy():
    """x tells the classes apart; y and z tell nothing."""
    policy = bc.RoundRobin(SPACE, 60, 1, seed=1)
    while (query := policy.ask()) is not None:
        policy.tell(query, "b" if query.feature == "x" and query.target == "q" else "a")
    return policy


def test_the_shaded_mass_is_that_of_the_beta_distribution():
    shapes = {"few": (2, 1), "many": (30, 10)}
    posts = {name: container(*shape) for name, shape in shapes.items()}
    ax = plots.credibility_density(posts, at=YES, epsilon=0.1)
    said = [text.get_text() for text in ax.get_legend().get_texts()]
    for (name, (a, b)), line, band, label in zip(
        shapes.items(), ax.lines, ax.collections, said, strict=True
    ):
        mean = a / (a + b)
        expected = beta.cdf(mean + 0.1, a, b) - beta.cdf(mean - 0.1, a, b)
        # 4,000 independent draws: the share's standard error is at most .008, the mean's moves the
        # band by a few thousandths, and the label is rounded to .005
        assert label.startswith(f"{name}: ")
        assert float(label.split(": ")[1]) == pytest.approx(expected, abs=4 * 0.008 + 0.005)
        places, heights = line.get_data()
        assert np.trapezoid(heights, places) == pytest.approx(1, abs=0.01)
        ends = band.get_paths()[0].vertices[:, 0]
        drawn = posts[name].posterior["conditional"].sel(YES).to_numpy()
        assert ends.min() == pytest.approx(drawn.mean() - 0.1)
        assert ends.max() == pytest.approx(drawn.mean() + 0.1)
    # the densities are those of the draws' distribution, where the kernel is narrow beside it
    places, heights = ax.lines[1].get_data()
    assert np.abs(heights - beta.pdf(places, 30, 10)).max() < 0.1 * heights.max()
    assert ax.get_xlabel() == "conditional[x=a]"


def test_a_density_stays_between_nought_and_one():
    ax = plots.credibility_density(container(1, 20), at=YES)
    places, heights = ax.lines[0].get_data()
    assert (places.min(), places.max()) == (0, 1)
    # Beta(1, 20) is highest at 0, where a kernel without reflection would have half the height
    assert heights[0] > 0.75 * 20
    assert ax.collections[0].get_paths()[0].vertices[:, 0].min() == 0
    assert ax.get_legend() is None


def test_what_is_no_probability_is_refused():
    post = container(2, 3)
    with pytest.raises(ValueError, match="no variable 'rate'; there are conditional"):
        plots.credibility_density(post, at=YES, variable="rate")
    with pytest.raises(ValueError, match="several entries; expected ids of feature_value"):
        plots.credibility_density(post, at={})
    with pytest.raises(ValueError, match="at least one"):
        plots.credibility_density({}, at=YES)
    draws = np.random.default_rng(0).normal(size=(2, 9))
    for values, complaint in ((draws, "draws outside 0..1"), (draws * 0, "all draws are equal")):
        wrong = assemble({"posterior": dataset_of({"rate": (("chain", "draw"), values)})})
        with pytest.raises(ValueError, match=complaint):
            plots.credibility_density(wrong, at={}, variable="rate")


def test_gains_are_those_of_exact_draws(policy):
    ax = plots.thompson_gains(policy, n_draws=400)
    assert ax.get_yticklabels()[0].get_text() == "x"
    assert ax.get_title(loc="left") == "x has the highest gain in 100% of the draws"
    dots, ring = ax.collections[1], ax.collections[2]
    drawn = dots.get_offsets()[:, 0]
    assert len(drawn) == 400
    # the information of a binary feature about a class with P = 1/2, under Dirichlet rows
    result = policy.result()
    asked = result.history[result.history["feature"] == "x"]
    counts = np.array(
        [[(asked["answers"][asked["target"] == y] == (v,)).sum() for v in "ab"] for y in "pq"]
    )
    rows = 1 + counts

    def entropy(p):
        return -(p * np.log(p) + (1 - p) * np.log(1 - p))

    def information(p, q):
        return entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2

    rng = np.random.default_rng(9)
    p, q = (rng.beta(*row, size=20_000) for row in rows)
    exact = information(p, q)
    # 400 draws against 20,000
    assert abs(drawn.mean() - exact.mean()) < 4 * exact.std() * np.sqrt(1 / 400 + 1 / 20_000)
    means = rows[:, 0] / rows.sum(axis=1)
    assert ring.get_offsets()[0, 0] == pytest.approx(information(*means))


def test_gains_beyond_a_feature_leave_it_out(policy):
    events = policy.events
    ax = plots.thompson_gains(policy, given=["x"], n_draws=50)
    assert {label.get_text() for label in ax.get_yticklabels()} == {"y", "z"}
    assert ax.get_xlabel() == "information about the class beyond 'x' (nats)"
    shares = [float(text.get_text()[:-1]) for text in ax.texts if text.get_text().endswith("%")]
    assert sum(shares) == pytest.approx(100, abs=1)
    assert policy.events == events
    with pytest.raises(ValueError, match="there is no feature 'w'; expected some of 'x', 'y', 'z'"):
        plots.thompson_gains(policy, given=["w"])
    with pytest.raises(ValueError, match="fewer features than there are"):
        plots.thompson_gains(policy, given=["x", "y", "z"])
