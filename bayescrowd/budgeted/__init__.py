"""Budgeted learning: what to ask next, and which K features to use in the end.

How the parts fit together, from the bottom up:

* `space`: `FeatureSpace`, what can be asked; `FeatureSpace.code` turns tables into positions.
* `beliefs/`: a `Belief` per kind of model takes observations in and gives channels
  P(outcome | class) out, as a draw from the posterior or as its mean. Nothing else knows what an
  outcome is: naive Bayes has the feature's values, a model of several noisy labels their multisets.
  `Belief.reader` makes what reads labels for the classifier. A new kind of model is a new file
  there and a line in `beliefs.options.BELIEFS`.
* `information_gain`: information gain given the chosen features, and greedy selection, from
  channels alone.
* `query_book`: queries, answers, money and events. Budget is spent in `QueryBook.answer` alone.
* `query_log`: all events so far, what users report, and what of it was reported before.
* `state`: `State`, everything that a decision depends on, as a value, and the decisions.
* `core`: `Core`, the pure half of a policy: `choose(rng, state) -> Decision` and
  `tell(state, event) -> State`.
* `classifier`: what a policy leaves behind.
* `policy`: `Policy`, the half for users: it keeps the state and the log of events, and checks what
  is reported.
* `result`: what a policy has learned, and tables of what was spent and told.
* `purchase_summary`, `policy_summary`: what was bought, for terminals and notebooks.
* `purchases`, `purchase_draws`: the posterior draws of the NumPyro model given what was bought.
* `policies/`: the policies. A new one is a `Core` and a `Policy` that makes it, in a file there.
* `evaluation/`: policies tried out on labelled tables.

Inside a core, positions are those of the policy's own space, in which features and classes are
reordered, and values are slots, numbered as they appear. Everywhere else names are the user's.
"""
