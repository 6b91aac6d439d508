"""What is believed of the features, given the answers so far.

* `naive_bayes`: the protocol `Belief`, and the conjugate posterior of naive Bayes.
* `access_path`: several noisy labels per observation; Gibbs chains that are kept warm.
* `shrinkage`, `noisy_shrinkage`: priors that learn how much the classes differ.
* `credibility`: how well a feature's parameters are known.
"""
