"""What is believed of the features, given the answers so far. A belief is a value.

* `naive_bayes`: the protocol `Belief`, and the conjugate posterior of naive Bayes.
* `access_path`: several noisy labels per observation; Gibbs chains that are kept warm.
* `label_multisets`: probabilities of the labels of one observation, whatever their order.
* `shrinkage`: a prior that learns how much the classes differ; `noisy_shrinkage`: the same with
  several noisy labels per observation.
* `options`: what a user chooses about a belief, and how each model's belief begins.
* `credibility`: how well a feature's parameters are known.
"""
