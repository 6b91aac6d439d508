"""Point estimates of true labels and of workers' quality.

What every method shares:

* `protocol`: `Aggregator`, with one `fit` for all methods, and what a fit offers.
* `em`: EM for hidden classes, which most methods share.
* `votes`: shares of votes, and ties between classes.
* `worker_label_pairs`: the pairs of a worker and a label that occur.
* `worker_rows`, `whole_matrices`: confusion matrices in compact form, and as one array.
* `smoothing`: confusion rows from expected counts and pseudo-counts.
* `implied`: the confusion matrices that the answers of any method imply.
* `quality`: the accuracy and information of workers, and a warning flag.
* `post_strata`: shares that a few known cases make honest.
* `dependence` (with `rater_pairs`): how far raters err together, and who repeats whom.
* `fit_summary`: a fit on one line, and as a small table for notebooks.
* `task_sample`: samples of tasks that do not depend on ids or on the order of rows.

One file per method:

* `majority`: `MajorityVote` and `Wawa`.
* `dawid_skene`, `one_coin`: `DawidSkene` and `OneCoinDawidSkene`.
* `bwa` (with `bwa_iteration`): a Bayesian weighted average of votes.
* `ibcc`, `ebcc` (with `ebcc_subtypes`): Bayesian combination of classifiers, and the same with
  subtypes of tasks, for workers who err together; both on `row_distributions`.
* `glad` (with `glad_em`), `mace`, `mmsr`, `zero_based_skill`: methods of those names.
* `kos`, and `singular_vectors` (`GhoshSVD`, `EigenRatio`), on `ordinal`, weighted votes on ordered
  classes, and `eigenvectors`.

Three families have folders of their own: `spectral`, `shrunken` and `auto`, the default.
"""
