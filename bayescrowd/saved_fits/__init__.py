"""What comes back from the file of a fit.

* `loading`: `load`, which finds the estimator among the exported ones.
"""
