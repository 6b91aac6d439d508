"""Nushi, Singla, Krause and Kossmann (2016), 'Learning and feature selection under budget'.

* `figure4`, `figure5`, `figure6`, `figure7`, `table1`, `table2`: as in the paper.
* `runs`: paired runs of policies, which all of them share; `birds`: the data of figure 6.
"""
