"""Spectral start, then EM: Zhang, Chen, Zhou and Jordan (2014).

* `worker_groups`: three random groups of workers that do not depend on ids.
* `orthogonal_tensor`: the tensor power method.
* `method_of_moments`: confusion matrices from the groups' moments.
* `moment_strength`: how far the moments of a crowd stand out from their noise.
* `row_prior`: a prior for confusion rows, learned from the crowd.
* `estimator`: `SpectralDawidSkene`.
"""
