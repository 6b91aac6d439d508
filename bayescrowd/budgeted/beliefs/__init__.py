"""What is believed of the features, given the answers so far. A belief is a value.

* `naive_bayes`: the protocol `Belief`, and the conjugate posterior of naive Bayes; `majorities`:
  one observation from several labels.
* `access_path`: several noisy labels per observation; Gibbs chains that are kept warm.
  `worker_rows`: parameters of workers' own, partially pooled.
* `nuts`: the NumPyro models of naive Bayes and of the access path, drawn from by NUTS, a feature at
  a time; `own_model`: a user's own NumPyro model, which a `model_sampler` holds; `warm_nuts`: the
  chains of both, kept warm; `feature_readings`: what was bought, as observations of such models;
  `drawn_tables`: tables known by draws.
* `label_multisets`: probabilities of the labels of one observation, whatever their order.
* `shrinkage`: a prior that learns how much the classes differ; `noisy_shrinkage`: the same with
  several noisy labels per observation.
* `options`: what a user chooses about a belief, and how each model's belief begins.
* `credibility`: how well the parameters of a feature are known; `access_path_credibility`: the same
  where values are hidden; `credibility_thresholds`: how credible a feature must be.
"""
