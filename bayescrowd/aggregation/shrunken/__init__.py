"""EM with workers' confusion rows that are shrunk toward a base.

* `rows`: the EM, for any base.
* `baselines`: the two simplest bases, one coin per worker and the crowd's mean rows.
* `aggregator`: what the estimators of this folder share.
* `empirical_bayes`: `EmpiricalBayesDawidSkene`; the base is learned from the crowd.
* `worker_types`: `WorkerTypes`; each type of worker has a base of its own.
"""
