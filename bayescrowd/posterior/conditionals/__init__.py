"""The conditionals of the conjugate models, for Gibbs sampling.

* Every conjugate model has a module of its own name here, whose `CONDITIONALS` say how its
  parameters are drawn given the classes; `protocol` states what they consist of.
* `classes`, `crowd_labels`: counts and log densities that several models share.
* `slices`: slice sampling of many scalars at once; `names`: exchanges of two classes' names.
* `access_path_sweep`: the one sweep of the access path model; `access_path_feature`: its chains for
  a single feature whose classes are known; `access_path_workers`: these where some workers have
  rows of their own.
* `judgements`: the model of numeric judgements.
"""
