"""Feature multi-selection: which attributes to ask for, and how often.

* `moments`: covariances between objects and variances within them.
* `paths`: the order in which judgements are bought.
* `predictor`: the linear predictor on averages of judgements.
* `selector`: what every estimator of this folder shares.
* `repeat_summary`: the chosen repeats, for terminals and notebooks.
* `multi_selection`: `MultiSelection` and `MultiSelectionClassifier`.
* `averages`: the baselines `Averages` and `Copies`.
* `plan`: how many objects to learn from, and how many judgements of each.
"""
