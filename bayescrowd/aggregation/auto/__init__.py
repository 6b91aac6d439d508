"""The default: an average of models, weighted by how well they predict held-out labels.

* `pool`: the models that are averaged.
* `held_out_scores`: how well each predicts labels of tasks it has not seen.
* `aggregator`: `AutoAggregator` and `aggregate`.
"""
