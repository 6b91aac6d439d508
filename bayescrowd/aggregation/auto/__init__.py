"""The default: an average of models, weighted by how well they predict held-out labels.

* `held_out_scores`: how well models predict labels of tasks that they have not seen.
* `rater_bootstrap`: fits under random weights of the raters, and how far they disagree.
* `pool`: the models that are averaged, and their weights.
* `blend`: how the candidates are combined where raters err together.
* `prediction_strength`: how much a classifier's probabilities say beyond its label.
* `alarm`: whether labels alone can decide, or gold is needed.
* `gold_tilt`: how a few gold labels correct the answer, on `gold_regression`.
* `gold_report`: what the gold changed, and what it says about the fit and its raters.
* `rater_intervals`: the accuracy of each rater, with an interval that holds.
* `reasons`: what the answer rests on, in words.
* `next_steps`: what to try next, which `why_` ends with.
* `aggregator`: `AutoAggregator` and `aggregate`.
"""
