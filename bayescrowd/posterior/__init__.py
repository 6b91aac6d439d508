"""Posteriors of the models, by Gibbs sampling, NUTS or variational inference.

* `sample`: `sample_posterior` and `label_posterior`.
* `crowd_adapter`, `feature_adapter`: data as samplers take them, and draws as users read them;
  `feature_data`: tables of features, coded for the models.
* `gibbs`, `nuts`, `svi`: the samplers; `conditionals`: what Gibbs sampling draws from.
* `chain_method`: how several chains advance together.
* `chains`: runs chains and records what an analysis needs; `cost`: what that will cost.
* `convergence`: R-hat and effective draws of many quantities at once; `jumps`: transitions between
  modes; `chain_groups`: which chains are in one mode; `modes`: the modes' weights; `mode_report`:
  what to tell a user of them; `mode_search`: how sampling goes on with all of it.
* `alignment`: draws that name the classes differently, brought to the same names.
* `container`: ArviZ's container, written and read.
* `predictive`: prior and posterior predictive draws.
* `leave_one_out`: what a model says of each judgement from all others, for LOO-PIT plots.
* `diagnostics`, `approximation`, `checks`, `calibration`: whether to believe the draws.
* `shared_errors`: whether raters err together more than the model expects.
* `workers`: `worker_posterior`.
* `judgements`: draws of the model of numeric judgements; `repeats`: what they say about repeats.
"""
