"""Published tables and figures, rerun on the real data: measured values beside published ones.

* `spectral`, `mi`, `stagewise`, `bleafs`, `multiselection`: one folder per paper, with one module
  per table or figure.
* `methods`, `posterior_calibration`: experiments of this package.
* `bench`: any methods on a folder of crowds with known truth; what `bayescrowd bench` runs.
* `engine`: runs, resumes, judges, prints and writes all experiments in the same way.

A module defines `EXPERIMENT`, an `Experiment` of `engine.experiment`: the cells with their
published values, a function that measures one part of them for one seed, and a function that draws
the outcomes. To add one, write the module and enter it in `engine/catalogue.py`.
"""
