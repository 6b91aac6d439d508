"""Zhao and Zucker, 'Stagewise learning for sparse clustering of discretely-valued data'.

* `figure1`, `figure3`, `figure4`, `figure5`, `table1`: the figures and the table of the paper.
* `crowds`: the settings, simulated crowds and scores that they share.
"""
