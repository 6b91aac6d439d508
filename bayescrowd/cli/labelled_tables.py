"""Reading tables of instances with features and a class from files, for `bayescrowd budget`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayescrowd.data.columns import constant_columns, factorize_column, refuse_missing
from bayescrowd.data.table_dataset import TableDataset
from bayescrowd.data.vocabulary import Where, comma_list, refuse_indistinct
from bayescrowd.io.file_tables import (
    DelimitedText,
    FileTable,
    JsonLines,
    Parquet,
    file_contents,
)

__all__ = ["read_labelled_table"]

MOST_CLASSES = 100
"""A column with more distinct values than this is not taken for the class."""

LEAST_ROWS_PER_VALUE = 2
"""A feature in words with fewer rows per value than this is taken for an id."""


def read_labelled_table(
    path: str,
    *,
    target: str,
    ignore: Sequence[str] = (),
    missing: Sequence[str] = (),
    raw_cells: bool = False,
) -> TableDataset:
    r"""Read a table; `description` says which columns were left out, and why.

    Args:
        path: a file of CSV, TSV, JSON lines or Parquet, also gzipped; '-' is standard input, CSV.
        target: name of the column that holds the class.
        ignore: names of columns to leave out.
        missing: values that stand for a missing one; an empty field always does.
        raw_cells: keep the apostrophe before text that a spreadsheet would run.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file holds no table, a column is absent, or no class or feature is left.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "birds.csv")
        >>> _ = path.write_text("beak,day,kind\nlong,1,owl\nshort,1,wren\n?,1,owl\nlong,1,owl\n")
        >>> table = read_labelled_table(str(path), target="kind", missing=["?"])
        >>> table.features["beak"].isna().sum(), table.description
        (np.int64(1), 'left out, having a single value: day')
    """
    file = _table(path, raw_cells=raw_cells)
    for name in (target, *ignore):
        if name not in file.columns:
            raise ValueError(
                f"{file.source}: there is no column {name!r}; expected one of "
                f"{comma_list(file.columns)}"
            )
    wanted = [name for name in file.columns if name not in ignore]
    frame = _frame(file, wanted).replace(dict.fromkeys(missing, None))
    frame = frame.map(lambda value: None if value == "" else value)
    if frame.empty:
        raise ValueError(f"{file.source}: there are no rows below the header")
    columns = {name: _numbers_if_all_are(frame[name]) for name in wanted}
    for name, column in columns.items():
        _check_values(column, name, file)
    classes = columns.pop(target)
    _check_target(classes, target, file)
    features = pd.DataFrame(columns)
    left_out = constant_columns(features, Where(file.source, file.row_number))
    features = features.drop(columns=left_out)
    if features.shape[1] == 0:
        raise ValueError(f"{file.source}: no column besides {target!r} has two or more values")
    for name in columns:
        _check_feature(columns[name], name, file)
    names = ", ".join(map(str, left_out))
    note = f"left out, having a single value: {names}" if left_out else ""
    return TableDataset(features, classes, note, Path(path).stem, file.source)


def _table(path: str, *, raw_cells: bool) -> FileTable:
    source, data = file_contents(path)
    extension = Path(path.lower().removesuffix(".gz")).suffix
    if extension in (".parquet", ".pq"):
        return Parquet(source, data)
    if extension in (".jsonl", ".ndjson"):
        return JsonLines(source, data)
    return DelimitedText(source, data, "\t" if extension in (".tsv", ".tab") else ",", raw_cells)


def _frame(file: FileTable, names: list[str]) -> pd.DataFrame:
    table: Any = file.read(names)
    frame = table if isinstance(table, pd.DataFrame) else table.to_pandas()
    # Delimited text is read as dictionaries, which pandas takes for categories.
    return pd.DataFrame({name: _plain_column(frame[name]) for name in names})


def _plain_column(column: pd.Series) -> pd.Series:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.astype(column.cat.categories.dtype if column.notna().all() else object)
    return column


def _numbers_if_all_are(column: pd.Series) -> pd.Series:
    """The column as numbers if all its values are written as numbers, otherwise as it is."""
    if column.dtype != object and not pd.api.types.is_string_dtype(column.dtype):
        return column
    numbers = pd.to_numeric(column, errors="coerce")
    is_same = numbers.notna().equals(column.notna())
    return numbers if is_same and column.notna().any() else column.astype(object)


def _check_values(column: pd.Series, name: str, file: FileTable) -> None:
    """Refuse what a table cannot hold, and values that are written alike, such as 1 and '1'."""
    _, values = factorize_column(column, name, Where(file.source, file.row_number))
    try:
        refuse_indistinct(values, "value")
    except ValueError as fault:
        raise ValueError(f"{file.source}: column {name!r}: {fault}") from None


def _check_target(classes: pd.Series, target: str, file: FileTable) -> None:
    refuse_missing(classes, target, "class", Where(file.source, file.row_number))
    n_classes = classes.nunique()
    if n_classes < 2:
        raise ValueError(
            f"{file.source}: column {target!r} has one class only, {classes.iloc[0]!r}; expected "
            "two or more"
        )
    if n_classes > MOST_CLASSES:
        raise ValueError(
            f"{file.source}: column {target!r} has {n_classes:,} distinct values; expected a "
            f"class, of which there may be up to {MOST_CLASSES}"
        )


def _check_feature(column: pd.Series, name: str, file: FileTable) -> None:
    """Refuse infinite numbers, and ids and free text, of which labels of a few rows say nothing."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        is_infinite = np.isinf(column.to_numpy(dtype=float, na_value=np.nan))
        if is_infinite.any():
            row = file.row_number(int(is_infinite.argmax()))
            raise ValueError(
                f"{file.source}: row {row}, column {name!r}: {column[is_infinite].iloc[0]} is not "
                "a finite number"
            )
        return
    n_values, n_rows = column.nunique(), int(column.notna().sum())
    if n_values > 20 and n_rows < LEAST_ROWS_PER_VALUE * n_values:
        raise ValueError(
            f"{file.source}: column {name!r} has {n_values:,} distinct values in {n_rows:,} rows, "
            f"like an id; --ignore {name} leaves it out"
        )
