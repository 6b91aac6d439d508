"""What comes back from the file of a fit.

* `loading`: `load`, which finds the estimator among the exported ones.
* `known_raters`: labels of new tasks by the raters of a fit, with ids matched as they are written.
"""
