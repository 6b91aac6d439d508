"""Reading and writing files.

* `cells`: text that a spreadsheet would run as a formula, made harmless.
* `file_tables`: tables in CSV, TSV, JSON, JSON lines and Parquet files.
* `platform_exports`: exports of Mechanical Turk, Label Studio and Toloka.
* `reading`: `read_annotations` and `read_truth`, for tables and exports.
* `judgement_files`: numeric judgements, targets and costs.
* `writing`: tables and pictures, written whole or not at all.
* `journal`: a file of JSON lines that survives interruptions.
"""
