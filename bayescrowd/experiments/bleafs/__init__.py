"""Nushi, Singla, Krause and Kossmann (2016), 'Learning and feature selection under budget'.

* `figure4`, `figure5`, `figure6`, `figure7`, `table1`, `table2`: one module per figure and table.
* `runs`: problems, policies, runs, claims and pictures that these share; `birds`: the data of
  figure 6.
"""
