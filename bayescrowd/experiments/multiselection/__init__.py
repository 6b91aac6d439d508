"""Sabato and Kalai (2013), 'Feature multi-selection among subjective features'.

* `figures12`, `figure3`, `figure4`: the figures of the paper.
* `errors`: test errors by budget; `people`: a simulated crowd that judges photos of people.
"""
