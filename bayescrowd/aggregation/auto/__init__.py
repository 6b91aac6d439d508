"""The default: an average of models, weighted by how well they predict held-out labels.

* `held_out_scores`: how well models predict labels of tasks that they have not seen.
* `pool`: the models that are averaged, and their weights.
* `gold_tilt`: how a few gold labels correct the answer, on `gold_regression`.
* `gold_report`: what the gold changed, and what it says about the fit and its raters.
* `aggregator`: `AutoAggregator` and `aggregate`.
"""
