"""Trying policies out on labelled tables.

* `table_crowd`: a crowd that answers from a table.
* `simulation`: `simulate_budget`, one run.
* `curve`: `budget_curve`, many paired runs; `journal`: what of them is finished.
* `planning`: `plan_budget`, how much budget is enough.
"""
