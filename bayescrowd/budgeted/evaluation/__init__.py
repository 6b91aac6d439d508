"""Policies tried out on labelled tables.

* `table_crowd`: a crowd that answers from a table.
* `paired_runs`: the engine: a random split of a table, runs of policies on it, and the reference
  that learns from all data.
* `simulation`: `simulate_budget`, one run.
* `curve`: `budget_curve`, many paired runs; `journal`: the runs that are finished.
* `curve_tables`: means and paired differences of such runs.
* `planning`: `plan_budget`, how much budget is enough.
"""
