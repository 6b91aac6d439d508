"""What is believed of the features, given the answers so far. A belief is a value.

* `naive_bayes`: the protocol `Belief`, and the conjugate posterior of naive Bayes.
* `access_path`: several noisy labels per observation; Gibbs chains that are kept warm.
* `label_multisets`: probabilities of the labels of one observation, whatever their order.
* `shrinkage`: a prior that learns how much the classes differ; `noisy_shrinkage`: the same with
  several noisy labels per observation.
* `credibility`: how well the parameters of a feature are known; `access_path_credibility`: the same
  where values are hidden; `credibility_thresholds`: how credible a feature must be.
"""
