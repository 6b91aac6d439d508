"""Mixtures of discrete product distributions.

* `mdpd`: `MDPD`, by EM from random starts.
* `stagewise`: the stagewise algorithm; `stagewise_estimator`: `StagewiseEM`, its estimator.
* `mixture_summary`: a mixture on one line, and as a small table for notebooks.
* `splitting`: how a component is split in two.
* `co_occurrence`, `pair_information`: which features depend on each other, given the components.
* `goodness`: the dependence between features that a mixture leaves unexplained.
* `vote_start`: which component is which class, and whether votes explain the labels better.
"""
