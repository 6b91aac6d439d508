"""Reading and writing files.

* `cells`: text that a spreadsheet would run as a formula, made harmless.
* `file_tables`: tables in CSV, TSV, JSON, JSON lines and Parquet files.
* `column_names`: columns found by their usual names, and a table of judgements with its columns.
* `platform_exports`: exports of Mechanical Turk, Label Studio and Toloka.
* `judge_tables`: wide tables with a column per judge, and JSON objects `{judge: {task: label}}`.
* `formats`: all of these formats, recognised by extension and content.
* `spellings`: labels that differ only in case or surrounding blanks, reported or merged.
* `positions`: where the values of a column stand in a vocabulary, by their text.
* `reading`: `read_annotations` and `read_truth`, for files of any of these formats.
* `model_predictions`: `read_predictions`, for the probabilities of a classifier.
* `verdicts`: `read_verdicts`, for judges who may abstain.
* `judgement_files`: numeric judgements, targets and costs.
* `writing`: tables and pictures, written whole or not at all.
* `journal`: a file of JSON lines that survives interruptions.
"""
