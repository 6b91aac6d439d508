"""Ranking and selecting workers, or any discrete features, without truth.

* `mutual_information`: `MutualInformationSelector`, by pairwise mutual information.
* `class_information`: what each feature says about the hidden class, on held-out items.
* `held_out_gains`: how well the first features of a ranking predict held-out items.
* `subsets`: the subset of features with the most information among themselves.
* `curve`: `selection_curve`, the error of labels against the number of workers.
* `selective_dawid_skene`: `SelectiveDawidSkene`, on the workers who carry information.
"""
