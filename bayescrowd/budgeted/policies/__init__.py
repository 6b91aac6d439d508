"""Policies: what to ask next. Each file holds a policy for users and its pure `Core`.

* `bleafs`: `BLeafs`, Thompson sampling with credibility checks.
* `lookahead`: `BudgetedSelection`, the default.
* `baselines`: `RoundRobin`, `BiasedRobin`, `TsGreedy`, `PosteriorMeanGreedy`, `ExploreThenCommit`.
"""
