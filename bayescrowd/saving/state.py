"""Objects of known classes as a JSON header and arrays of numbers, and back.

Every value that is not a plain number, text, truth value or None becomes a *node*: a JSON object
that says what it is made of. A node refers to earlier nodes by their position, so that an object
with two owners is stored once and has two owners again. Arrays of numbers stay arrays, with their
dtype and their layout in memory, on which the last bits of a sum depend.

Objects are restored by looking their class's name up among classes that the reader passes in;
nothing is imported because a file says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["KINDS", "StateReader", "StateWriter", "parts_of"]

KINDS = "biufMm"
"""Kinds of arrays that stay arrays: truth values, numbers and times, as in `numpy.dtype.kind`."""

_TEXT: Any = pd.Index(["text"]).dtype
"""Dtype of text in pandas."""


class StateWriter:
    """Turns values into cells of JSON, and collects the nodes and arrays that they refer to.

    Args:
        classes: the classes whose objects may occur.

    Attributes:
        nodes: what the cells refer to.
        arrays: the arrays that the nodes refer to, by name.

    Examples:
        >>> writer = StateWriter(())
        >>> writer.cell(("a", 1.5, np.array([1, 2])))
        {'node': 1}
        >>> StateReader(writer.nodes, writer.arrays, ()).value({"node": 1})
        ('a', 1.5, array([1, 2]))
    """

    def __init__(self, classes: Iterable[type]) -> None:
        self._classes = frozenset(classes)
        self.nodes: list[dict[str, Any]] = []
        self.arrays: dict[str, np.ndarray] = {}
        # The values are kept, since the identity of one that is gone may be given to another.
        self._seen: dict[int, tuple[Any, int]] = {}

    def cell(self, value: Any, name: str = "the value") -> Any:
        """What stands for a value in JSON.

        Args:
            value: the value.
            name: name of the value in messages.

        Raises:
            TypeError: the value, or something that it holds, cannot be saved.
        """
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if np.isfinite(value) else {"float": str(value)}
        if id(value) not in self._seen:
            node = self._node(value, name)
            self._seen[id(value)] = value, len(self.nodes)
            self.nodes.append(node)
        return {"node": self._seen[id(value)][1]}

    def _node(self, value: Any, name: str) -> dict[str, Any]:
        kind = type(value)
        if kind in self._classes:
            fields = {
                key: self.cell(part, f"{name}.{key}") for key, part in parts_of(value).items()
            }
            return {"type": "object", "class": kind.__name__, "fields": fields}
        for known, write in self._writers():
            if kind is known or (known is np.generic and isinstance(value, known)):
                return write(value, name)
        raise TypeError(
            f"{name} is a {kind.__module__}.{kind.__qualname__}, which cannot be saved; expected "
            "numbers, text, arrays, pandas objects, or lists, tuples and mappings of them"
        )

    def _writers(self) -> list[tuple[type, Callable[[Any, str], dict[str, Any]]]]:
        return [
            (np.ndarray, self._array),
            (np.generic, self._scalar),
            (list, self._list),
            (tuple, self._list),
            (dict, self._dict),
            (pd.RangeIndex, self._range),
            (pd.MultiIndex, self._multi_index),
            (pd.Index, self._index),
            (pd.DatetimeIndex, self._index),
            (pd.Series, self._series),
            (pd.DataFrame, self._frame),
        ]

    def _array(self, value: np.ndarray, name: str) -> dict[str, Any]:
        if value.dtype.kind not in KINDS:
            return {
                "type": "objects",
                "shape": list(value.shape),
                "items": [self.cell(part, f"an entry of {name}") for part in value.ravel()],
            }
        key = f"array-{len(self.arrays)}"
        self.arrays[key] = value
        return {"type": "array", "name": key, "writeable": bool(value.flags.writeable)}

    def _scalar(self, value: np.generic, name: str) -> dict[str, Any]:
        return {"type": "scalar", "array": self.cell(np.asarray(value), name)}

    def _list(self, value: list[Any] | tuple[Any, ...], name: str) -> dict[str, Any]:
        items = [self.cell(part, f"an entry of {name}") for part in value]
        return {"type": type(value).__name__, "items": items}

    def _dict(self, value: dict[Any, Any], name: str) -> dict[str, Any]:
        pairs = [
            [self.cell(key, f"a key of {name}"), self.cell(part, f"{name}[{key!r}]")]
            for key, part in value.items()
        ]
        return {"type": "dict", "items": pairs}

    def _range(self, value: pd.RangeIndex, name: str) -> dict[str, Any]:
        ends = [value.start, value.stop, value.step]
        return {"type": "range", "ends": ends, "name": self.cell(value.name, name)}

    def _multi_index(self, value: pd.MultiIndex, name: str) -> dict[str, Any]:
        return {
            "type": "multi-index",
            "levels": [self.cell(level, name) for level in value.levels],
            "codes": [self.cell(np.asarray(codes), name) for codes in value.codes],
            "names": [self.cell(level, name) for level in value.names],
        }

    def _index(self, value: pd.Index, name: str) -> dict[str, Any]:
        return {
            "type": "index",
            "values": self._values(value, name),
            "name": self.cell(value.name, name),
        }

    def _series(self, value: pd.Series, name: str) -> dict[str, Any]:
        return {
            "type": "series",
            "values": self._values(value, name),
            "index": self.cell(value.index, f"the index of {name}"),
            "name": self.cell(value.name, name),
        }

    def _frame(self, value: pd.DataFrame, name: str) -> dict[str, Any]:
        dtypes = set(value.dtypes)
        is_block = len(dtypes) == 1 and _is_of_numbers(next(iter(dtypes)))
        columns = (value.iloc[:, place] for place in range(value.shape[1]))
        return {
            "type": "frame",
            "block": self.cell(value.to_numpy(), name) if is_block else None,
            "parts": [] if is_block else [self._values(part, name) for part in columns],
            "index": self.cell(value.index, f"the index of {name}"),
            "columns": self.cell(value.columns, f"the columns of {name}"),
        }

    def _values(self, column: pd.Index | pd.Series, name: str) -> dict[str, Any]:
        """The values of an index or a series, with what tells their dtype."""
        if _is_of_numbers(column.dtype):
            return {"array": self.cell(column.to_numpy(), name)}
        if column.dtype == _TEXT and not column.isna().any():
            encoded = [text.encode() for text in column]
            lengths = np.array([len(text) for text in encoded], dtype=np.int64)
            joined = np.frombuffer(b"".join(encoded), dtype=np.uint8)
            return {"text": self.cell(joined, name), "lengths": self.cell(lengths, name)}
        if column.dtype == object:
            return {"objects": [self.cell(part, f"an entry of {name}") for part in column]}
        raise TypeError(
            f"{name} has the dtype {column.dtype}, which cannot be saved; expected numbers, text "
            "or plain objects"
        )


class StateReader:
    """Turns the cells of a `StateWriter` back into values.

    Args:
        nodes: the nodes of the writer.
        arrays: its arrays.
        classes: the classes whose objects may occur.

    Raises:
        KeyError, IndexError, TypeError, ValueError: the nodes are none of a writer's.
    """

    def __init__(
        self,
        nodes: Iterable[Mapping[str, Any]],
        arrays: Mapping[str, np.ndarray],
        classes: Iterable[type],
    ) -> None:
        self._arrays, self._classes = arrays, {kind.__name__: kind for kind in classes}
        self._values: list[Any] = []
        readers: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "object": self._object,
            "array": self._array,
            "objects": self._objects,
            "scalar": lambda node: self.value(node["array"])[()],
            "list": lambda node: self._list(node["items"]),
            "tuple": lambda node: tuple(self._list(node["items"])),
            "dict": lambda node: {self.value(k): self.value(v) for k, v in node["items"]},
            "range": self._range,
            "multi-index": self._multi_index,
            "index": lambda node: pd.Index(
                self._column(node["values"]), name=self.value(node["name"])
            ),
            "series": self._series,
            "frame": self._frame,
        }
        for node in nodes:
            self._values.append(readers[node["type"]](node))

    def value(self, cell: Any) -> Any:
        """The value that a cell stands for."""
        if not isinstance(cell, dict):
            return cell
        return float(cell["float"]) if "float" in cell else self._values[cell["node"]]

    def _list(self, cells: Iterable[Any]) -> list[Any]:
        return [self.value(cell) for cell in cells]

    def _object(self, node: Mapping[str, Any]) -> Any:
        kind = self._classes[node["class"]]
        fields = {name: self.value(cell) for name, cell in node["fields"].items()}
        if issubclass(kind, tuple) or dataclasses.is_dataclass(kind):
            return kind(**fields)
        made = object.__new__(kind)
        vars(made).update(fields)
        return made

    def _array(self, node: Mapping[str, Any]) -> np.ndarray:
        array = self._arrays[node["name"]]
        array.flags.writeable = bool(node["writeable"])
        return array

    def _objects(self, node: Mapping[str, Any]) -> np.ndarray:
        return _array_of_objects(self._list(node["items"])).reshape(node["shape"])

    def _range(self, node: Mapping[str, Any]) -> pd.RangeIndex:
        start, stop, step = node["ends"]
        return pd.RangeIndex(start, stop, step, name=self.value(node["name"]))

    def _multi_index(self, node: Mapping[str, Any]) -> pd.MultiIndex:
        return pd.MultiIndex(
            levels=self._list(node["levels"]),
            codes=self._list(node["codes"]),
            names=self._list(node["names"]),
        )

    def _series(self, node: Mapping[str, Any]) -> pd.Series:
        index, name = self.value(node["index"]), self.value(node["name"])
        return pd.Series(self._column(node["values"]), index=index, name=name)

    def _frame(self, node: Mapping[str, Any]) -> pd.DataFrame:
        index, columns = self.value(node["index"]), self.value(node["columns"])
        if node["block"] is not None:
            return pd.DataFrame(self.value(node["block"]), index=index, columns=columns)
        columns_of = (pd.Series(self._column(part), index=index) for part in node["parts"])
        parts = dict(enumerate(columns_of))
        return pd.DataFrame(parts, index=index).set_axis(columns, axis=1)

    def _column(self, values: Mapping[str, Any]) -> Any:
        """What an index or a series is made of."""
        if "array" in values:
            return self.value(values["array"])
        if "objects" in values:
            return pd.Index(_array_of_objects(self._list(values["objects"])), dtype=object)
        joined = self.value(values["text"]).tobytes()
        ends = np.cumsum(self.value(values["lengths"])).tolist()
        texts = [
            joined[start:end].decode() for start, end in zip([0, *ends[:-1]], ends, strict=False)
        ]
        return pd.Index(texts, dtype=_TEXT)


def parts_of(value: Any) -> dict[str, Any]:
    """The fields of a named tuple or a data class, else the attributes.

    What is computed when it is first read is left out: it can be computed again.
    """
    if isinstance(value, tuple):
        return value._asdict()  # type: ignore[attr-defined]
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {
        name: part
        for name, part in vars(value).items()
        if not isinstance(getattr(type(value), name, None), cached_property)
    }


def _is_of_numbers(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in KINDS


def _array_of_objects(values: list[Any]) -> np.ndarray:
    """Values as they are; NumPy would make a table of tuples of one length."""
    return np.fromiter(values, dtype=object, count=len(values))
