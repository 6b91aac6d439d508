"""EM with workers' confusion rows that are shrunk toward a base.

* `base`: rows from counts and a base.
* `baselines`: the two simplest models, one coin per worker and the crowd's mean rows.
* `ability`: the base follows from each worker's ability and the crowd's errors.
* `type_mixture`: the base follows from a few types of workers.
* `rows`: EM for any of these models.
* `aggregator`: what the estimators of this folder share.
* `empirical_bayes`: `EmpiricalBayesDawidSkene`, the estimator of `ability`.
* `worker_types`: `WorkerTypes`, the estimator of `type_mixture`.
"""
