"""The default with few replicates."""

import pytest

from bayescrowd.aggregation.auto import rater_bootstrap


@pytest.fixture
def few_replicates(monkeypatch):
    """The default itself, with few fits under random weights, which these tests are not about."""
    monkeypatch.setattr(rater_bootstrap, "LEAST_REPLICATES", 3)
    monkeypatch.setattr(rater_bootstrap, "MOST_REPLICATES", 3)
