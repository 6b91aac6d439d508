"""Files in and out.

* `cells`: text that a spreadsheet would run as a formula, made harmless.
* `file_tables`: tables from CSV, TSV, JSON, JSON lines and Parquet.
* `platform_exports`: files of Mechanical Turk, Label Studio and Toloka.
* `reading`: `read_annotations` and `read_truth`, from whatever was exported.
* `judgement_files`: numeric judgements, targets and costs.
* `writing`: tables and documents, written whole or not at all.
* `journal`: lines that survive an interruption, appended one at a time.
"""
