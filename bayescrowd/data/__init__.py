"""What users bring, coded and validated once.

* `text`: names shortened to fit into a table or a picture, and numbers with their nouns.
* `notebook_table`: small tables with bars, for notebooks.
* `vocabulary`: ids and names as users wrote them, as integer codes and as messages show them.
* `columns`: columns of tables, checked, coded and read as numbers.
* `coding`: tables of judgements as integer codes.
* `annotations`: `Annotations`, who gave which task which label.
* `matching`: ids and classes of new labels matched with those of a fit.
* `truth`: known labels of tasks; those that do not match the crowd's are counted and reported.
* `row_truth`: labels as a matrix and truth by row, as scikit-learn hands them on.
* `predictions`: predictions matched with known labels, ready to be scored.
* `classifier`: probabilities of a classifier, which becomes one more rater.
* `dataset`: `Dataset`, a crowd's labels with their truth and a description.
* `table_dataset`: `TableDataset`, instances with their features and their class.
* `features`: `FeatureTable`, discrete features of items with missing entries.
* `judgements`: numeric judgements of objects' attributes.
"""
