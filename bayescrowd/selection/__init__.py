"""Which workers, which features, and how often to ask.

* `workers`: ranking and selecting workers, or any discrete features.
* `repeats`: feature multi-selection, for averages of subjective judgements.
"""
