"""Zhang, Chen, Zhou and Jordan (2014), 'Spectral methods meet EM'.

* `table1`: label errors of six methods on five crowds.
* `clip`: label errors against the threshold at which the starting confusion matrices are clipped.
"""
