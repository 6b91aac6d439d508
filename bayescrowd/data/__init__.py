"""What users bring, coded and validated once.

* `text`: names made to fit into a table or a picture.
* `columns`: columns of tables, checked, coded and read as numbers.
* `vocabulary`: ids and names as users wrote them, and how messages show them.
* `truth`: known labels beside a crowd's; what does not match is counted and reported.
* `annotations`: `Annotations`, who gave which task which label.
* `features`: `FeatureTable`, discrete features of items with missing entries.
* `judgements`: numeric judgements of objects' attributes.
* `dataset`: `Dataset` and `TableDataset`, data with truth and a description.
"""
