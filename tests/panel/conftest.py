"""A stand-in for the default that fits at once, for tests that need many fits."""

import numpy as np
import pandas as pd
import pytest

from bayescrowd.aggregation.auto import rater_bootstrap
from bayescrowd.aggregation.auto.aggregator import AutoAggregator
from bayescrowd.aggregation.auto.alarm import raise_alarm
from bayescrowd.aggregation.auto.blend import smoothed_votes
from bayescrowd.aggregation.dependence import measure_dependence
from bayescrowd.aggregation.votes import decide
from bayescrowd.data.annotations import as_annotations
from bayescrowd.panel import dropping, report


class QuickDefault(AutoAggregator):
    """Votes weighted by agreement with the majority, with what a panel reads off the default."""

    def fit(self, data, gold=None):
        ann = as_annotations(data)
        shares = smoothed_votes(ann.votes)
        right = np.bincount(
            ann.worker_codes, shares[ann.task_codes, ann.label_codes], minlength=ann.n_workers
        ) / np.maximum(ann.labels_per_worker, 1)
        cell = ann.task_codes.astype(np.int64) * ann.n_classes + ann.label_codes
        votes = np.bincount(cell, right[ann.worker_codes] ** 2, ann.n_tasks * ann.n_classes)
        votes = votes.reshape(shares.shape) + 0.1
        probas = votes / votes.sum(axis=1, keepdims=True)
        self.probas_ = pd.DataFrame(probas, index=ann.tasks, columns=ann.classes)
        self.labels_ = decide(self.probas_, self.seed)[0]
        self.classes_, self.workers_ = ann.classes, ann.workers
        self.dependence_ = measure_dependence(ann, probas, instability=0.1)
        self.alarm_ = raise_alarm(probas, ann, instability=0.1, vote_weight=0.05)
        self._annotations, self._has_gold = ann, False
        return self


@pytest.fixture
def quick_default(monkeypatch):
    """The stand-in, in place of the default wherever a panel is fitted."""
    monkeypatch.setattr(dropping, "AutoAggregator", QuickDefault)
    monkeypatch.setattr(report, "AutoAggregator", QuickDefault)
    return QuickDefault


@pytest.fixture
def few_replicates(monkeypatch):
    """The default itself, with few fits under random weights, which these tests are not about."""
    monkeypatch.setattr(rater_bootstrap, "LEAST_REPLICATES", 3)
    monkeypatch.setattr(rater_bootstrap, "MOST_REPLICATES", 3)
