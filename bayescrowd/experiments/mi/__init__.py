"""Zhao and Zucker, 'Feature selection facilitates learning mixtures of discrete products'.

* `figure1`, `figure2`, `figure3`, `table1`, `table2`: the figures and tables of the paper.
* `selection`: methods, rankings and scoring that `table2` and `figure3` share.
"""
