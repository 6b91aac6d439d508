"""What all experiments share.

* `catalogue`: every published table and figure, the only list of experiments.
* `cells`, `experiment`: what an experiment is.
* `runner`: measures the units that are not in the `journal` yet.
* `verdict`, `outcome`, `results`: measured values beside published ones.
* `command`: what `bayescrowd reproduce` does.
* `recorded`: every value as it was last recorded, seed by seed.
* `label_errors`, `pictures`: parts that several experiments share.
"""
