"""Checks that run before the work does.

* `parameters`: constraints on arguments, declared in signatures and checked in one place.
* `priors`: fields of priors that may be arrays, and whether their shapes fit the data.
* `memory`: how much memory is available, and whether a computation fits into it.
"""
