"""The conditionals of the conjugate models, for Gibbs sampling.

* Every conjugate model has a module of its own name here, whose `CONDITIONALS` say how its
  parameters are drawn given the classes; `protocol` states what they consist of.
* `crowd_labels`: counts and log densities that the crowd models share.
* `judgements`: the model of numeric judgements.
* `access_path_groups`: the access path model of one feature with equal readings counted together.
"""
