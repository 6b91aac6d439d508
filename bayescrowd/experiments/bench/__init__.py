"""Methods measured side by side on a folder of crowds whose truth is known.

From below:

* `crowds`: the crowds of a folder, or of data sets, read and checked before anything is measured.
* `contenders`: the methods to measure, exported ones and a user's own.
* `measurement`: one method on one crowd: error, log loss, calibration and seconds.
* `records`: a journal of finished measurements, from which a killed run continues.
* `comparison`: all measurements as tables, with paired differences and their standard errors.
* `running`: measures what the journal lacks.
"""
