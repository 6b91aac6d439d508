"""The report: one HTML file that a project lead reads in two minutes, without a network.

* `document`: what a report says, as plain values; no HTML.
* `gathering`: the whole document, from a fit and what is known besides.
* `headline`: tasks settled and open, expected accuracy, shares of the classes.
* `rater_findings`: whether raters err together, whom one could spare, the table of raters.
* `agreement_findings`: measures of agreement and pairs of raters.
* `task_findings`: contested tasks and what is confused with what.
* `method_findings`: methods compared, and the fit against truth.
* `svg`: elements of inline pictures.
* `bars`, `heat_map`, `calibration_curve`, `vote_scale`: one kind of picture each.
* `page`: the document as HTML, from `templates/`.
"""
