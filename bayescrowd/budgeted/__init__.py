"""Budgeted learning: what to ask next, and which K features to use in the end.

How the parts meet, from below:

* `space`: `FeatureSpace`, what can be asked; `FeatureSpace.code` turns tables into positions.
* `belief`: a `Belief` per kind of model takes labels in and gives channels P(outcome | class) out,
  as a draw from the posterior or its mean, padded with zeros to the widest feature. Nothing else
  knows what an outcome is: naive Bayes has the feature's values, a model of several noisy labels
  the multisets of them. `Belief.rows` are the Dirichlet rows whose credibility counts, and
  `Belief.reader` makes a `Reader`, which tells log P(labels | class) to the classifier. A new kind
  of model is a new class beside `NaiveBayesBelief` and a line in `policy.BELIEFS`.
* `access_path`: the belief of the access path model, by Gibbs chains of each feature kept warm;
  `noisy_shrinkage` combines it with majorities, for `lookahead`.
* `gain`: information gain given the chosen features, and greedy selection, from channels alone.
* `credibility`: how well Dirichlet rows are known.
* `ledger`: queries, answers, money, events. `Ledger.tell` is where budget is spent.
* `policy`: `Policy`, the protocol: ask, tell, exhausted, withdraw, events, replay, result. A policy
  overrides `_choose` (which feature), may override `_next_class`, `_select`, `_first_belief`, and
  is told by `_asked`, `_observed` and `_withdrawn`.
* `bleafs`, `rivals`, `lookahead`: the policies.
* `classifier`: what comes out of them.
* `crowd`, `simulation`, `curve`: answers from a labelled table, one run, and many paired ones.

Inside a policy, positions are those of its own space (`Policy._space`), in which features and
classes are reordered; the ledger and the belief use them as well. Values are slots there, numbered
as they appear (`belief`). Names are the users' everywhere else.
"""
