"""NUTS starts where classes keep their names, and agrees with Gibbs on a real crowd."""

import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.models import dawid_skene
from bayescrowd.posterior.container import group_of


@pytest.fixture(scope="module")
def bluebird():
    if not bc.datasets.is_local("bluebird"):
        pytest.skip("bluebird is not on this machine: set BAYESCROWD_DATA to a folder with it")
    return bc.load_dataset("bluebird")


@pytest.mark.slow
def test_gibbs_and_nuts_agree_on_bluebird(bluebird):
    gibbs, nuts = (
        bc.sample_posterior(
            dawid_skene, bluebird.annotations, method, draws=1000, warmup=500, predictive=False
        )
        for method in ("gibbs", "nuts")
    )
    for post in (gibbs, nuts):
        # The draws are right, although the raters of bluebird err together.
        verdict = bc.diagnose(post).verdict
        assert verdict.startswith("These draws are right for a model that does not fit"), verdict
        # the prototypes made 12 errors; tasks near 1/2 may fall either way
        errors = 108 * bc.metrics.error_rate(bc.label_posterior(post), bluebird.truth)
        assert 10 <= errors <= 14
    gap = bc.label_posterior(gibbs) - bc.label_posterior(nuts)
    # standard deviation of a draw's probability below 1/2, effective sizes of 500 and more
    assert np.abs(gap.to_numpy()).max() < 4 * 0.5 * np.sqrt(2 / 500)
    names = ("mean", "std")
    for statistic in names:
        first, second = (
            getattr(group_of(post, "posterior")["confusion"], statistic)(["chain", "draw"])
            for post in (gibbs, nuts)
        )
        # confusion entries have standard deviations of at most 0.15 here
        assert float(np.abs(first - second).max()) < 4 * 0.15 * np.sqrt(2 / 500)
