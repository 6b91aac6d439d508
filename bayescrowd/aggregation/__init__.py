"""Point estimates of true labels and of workers' quality.

What every method shares:

* `protocol`: `Aggregator`, one `fit` for all, and what a fit offers.
* `em`: hidden classes given confusion rows; the E-step that most methods share.
* `worker_label_pairs`, `worker_rows`: confusion matrices, stored by what workers have said.
* `smoothing`: confusion rows from expected counts and pseudo-counts.
* `task_sample`: samples of tasks that do not depend on names or on the order of rows.

One file per method:

* `majority`: `MajorityVote` and `Wawa`.
* `dawid_skene`, `one_coin`: `DawidSkene` and `OneCoinDawidSkene`.
* `glad`, `mace`, `mmsr`, `zero_based_skill`: methods of those names.
* `ordinal`: weighted votes on ordered classes, for `kos` and for `singular_vectors`
  (`GhoshSVD`, `EigenRatio`).

And three families with a folder each: `spectral`, `shrunken` and `auto`, the default.
"""
