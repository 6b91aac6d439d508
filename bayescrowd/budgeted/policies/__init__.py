"""Policies: what to ask next.

* `bleafs`: `BLeafs`, Thompson sampling with credibility checks.
* `lookahead`: `BudgetedSelection`, the default.
* `baselines`: what both are compared with.
"""
