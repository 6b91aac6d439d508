"""Fits in files, without pickle.

* `archive`: arrays and a JSON header in one file, checked before anything is read.
* `state`: objects of known classes as such a header and such arrays, and back.
* `fit_file`: a fitted estimator in such a file, with the version of the format.
"""
