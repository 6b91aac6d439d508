"""Quick fits: many are needed here, and none of these tests is about the replicates of a fit."""

import pytest

from bayescrowd.aggregation.auto import rater_bootstrap


@pytest.fixture(scope="session", autouse=True)
def quick_fits():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rater_bootstrap, "LEAST_REPLICATES", 4)
        patch.setattr(rater_bootstrap, "MOST_REPLICATES", 6)
        yield
