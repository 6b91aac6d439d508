"""What all experiments share.

From below:

* `cells`: the numbers of a table, or the points of a figure.
* `verdict`, `outcome`: a measured cell beside its published value.
* `experiment`: what an experiment is, from its cells to its claims about the outcomes.
* `catalogue`: every published table and figure, the only list of experiments.
* `journal`, `runner`: measure what the journal lacks, and record it.
* `results`: the outcomes as a table, as JSON and as text.
* `command`: what `bayescrowd reproduce` does.
* `recorded`: every value as it was last recorded, seed by seed.

`label_errors` and `pictures` serve several experiments.
"""
