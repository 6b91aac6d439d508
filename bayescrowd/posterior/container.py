"""ArviZ's container of posterior draws, whichever ArviZ is installed.

ArviZ 0.x keeps the groups of an inference (posterior, sample_stats, ...) in an `InferenceData`,
ArviZ 1.x in an xarray `DataTree`. Both are groups of xarray datasets, and this module is the only
one that knows the difference. Elsewhere a container is built by `assemble`, read by `group_of`,
and kept in a NetCDF file by `save` and `load`; `leave_one_out_places` calls the function of ArviZ
whose arguments changed.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from typing import Any

import arviz as az
import h5netcdf  # type: ignore[import-untyped]
import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float
from xarray.backends.h5netcdf_ import H5NetCDFStore

from bayescrowd.data.vocabulary import refuse_indistinct
from bayescrowd.io.writing import check_target, new_file

__all__ = [
    "IS_FIXED",
    "NAMES_ARE_OPEN",
    "Variable",
    "assemble",
    "dataset_of",
    "group_names",
    "group_of",
    "leave_one_out_places",
    "load",
    "save",
]

Container = Any
"""`arviz.InferenceData` (ArviZ 0.x) or `xarray.DataTree` (ArviZ 1.x)."""

Variable = tuple[Sequence[str], Any]
"""Names of the dimensions and the values."""

IS_FIXED = "is_fixed"
"""Attribute of variables that are given and the same in every draw: there is nothing to judge."""

NAMES_ARE_OPEN = "names_are_open"
"""Attribute of variables whose hidden categories may swap names: not to be judged or averaged."""

_HAS_DATATREE = int(az.__version__.split(".")[0]) >= 1


def assemble(
    groups: Mapping[str, xr.Dataset], *, attrs: Mapping[str, Any] | None = None
) -> Container:
    """Put groups of variables into the container of the installed ArviZ.

    Args:
        groups: a dataset for each group's name; names outside ArviZ's schema are allowed.
        attrs: attributes of the whole container.

    Examples:
        >>> import numpy as np
        >>> draws = dataset_of({"rate": (("chain", "draw"), np.zeros((2, 5)))})
        >>> post = assemble({"posterior": draws})
        >>> post.posterior["rate"].shape
        (2, 5)
    """
    if not groups:
        raise ValueError("no groups: expected at least one, such as 'posterior'")
    if not _HAS_DATATREE:
        named: dict[str, Any] = dict(groups)
        return az.InferenceData(attrs=dict(attrs or {}), **named)
    tree = xr.DataTree.from_dict({f"/{name}": dataset for name, dataset in groups.items()})
    tree.attrs.update(attrs or {})
    return tree


def dataset_of(
    variables: Mapping[str, Variable],
    *,
    coords: Mapping[str, Any] | None = None,
    attrs: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """A dataset of named arrays; of the coordinates only those of its dimensions are kept.

    The dimensions chain and draw are numbered from 0 unless they are given.

    Args:
        variables: dimension names and values of each variable.
        coords: ids along the dimensions: a pandas Index, a sequence or an array.
        attrs: attributes of the dataset.
    """
    used = {dim for dims, _ in variables.values() for dim in dims}
    sizes = {
        dim: np.shape(values)[axis]
        for dims, values in variables.values()
        for axis, dim in enumerate(dims)
    }
    ids = {
        name: _plain_ids(values, name) for name, values in (coords or {}).items() if name in used
    }
    for dim in ("chain", "draw"):
        if dim in used and dim not in ids:
            ids[dim] = np.arange(sizes[dim])
    data = {name: (tuple(dims), np.asarray(values)) for name, (dims, values) in variables.items()}
    return xr.Dataset(data, coords=ids, attrs=dict(attrs or {}))


def group_names(post: Container) -> list[str]:
    """Names of the groups of draws and data in the result of `sample_posterior`.

    Args:
        post: the result of `sample_posterior`.

    Raises:
        TypeError: `post` is no container of the installed ArviZ.

    Examples:
        >>> import bayescrowd as bc
        >>> labels = bc.simulate.crowd(30, 5, accuracy=0.9, seed=0).annotations
        >>> post = bc.sample_posterior(bc.models.dawid_skene, labels, chains=2, draws=50, warmup=10)
        >>> "posterior" in group_names(post), "posterior_predictive" in group_names(post)
        (True, True)
    """
    _check_container(post)
    names = post.groups() if not _HAS_DATATREE else post.children
    return list(names)


def group_of(post: Container, name: str) -> xr.Dataset:
    """One group as a dataset.

    Raises:
        TypeError: `post` is no container of the installed ArviZ.
        ValueError: the group is absent.
    """
    _check_container(post)
    names = group_names(post)
    if name not in names:
        raise ValueError(f"the container has no group {name!r}; it has {', '.join(names)}")
    group: Any = post[name]
    return group.to_dataset() if _HAS_DATATREE else group


def _check_container(post: Container) -> None:
    expected = xr.DataTree if _HAS_DATATREE else az.InferenceData
    if not isinstance(post, expected):
        raise TypeError(
            f"expected the {expected.__name__} that sample_posterior returns, "
            f"got {type(post).__name__}"
        )


def leave_one_out_places(post: Container, variable: str) -> Float[np.ndarray, " judgement"]:
    """Where each observed value lies among its predictions from all others, from 0 to 1.

    ArviZ weighs the draws, smooths the weights (PSIS) and sums those at or below the value.

    Args:
        post: a container with log-likelihoods, predictions and observations of the variable, each
            with one dimension besides chains and draws.
        variable: the name of the variable.
    """
    _check_container(post)
    loo_pit: Any = az.loo_pit
    if _HAS_DATATREE:
        places = loo_pit(post, var_names=[variable])[variable]
    else:
        places = loo_pit(post, y=variable)
    return np.asarray(places, dtype=float)


def save(post: Container, path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
    """Write a container to one NetCDF file, whole or not at all.

    The file is made in memory first: HDF5 crashes the process if the disk is full.

    Raises:
        FileExistsError: there is a file already, and `overwrite` is false.
        OSError: the file cannot be written, such as on a full disk.
    """
    check_target(path, overwrite=overwrite)
    content = io.BytesIO()
    with h5netcdf.File(content, "w") as root:
        root.attrs.update(post.attrs)
        for name in group_names(post):
            group = group_of(post, name)
            store = H5NetCDFStore(root.create_group(name), mode="a")
            packed = {
                key: {"zlib": True}
                for key, variable in group.variables.items()
                if variable.ndim and variable.dtype.kind in "iuf"
            }
            group.dump_to_store(store, encoding=packed)
    with new_file(path, overwrite=overwrite) as file:
        file.write(content.getbuffer())


def load(path: str | os.PathLike[str]) -> Container:
    """Read a container from a NetCDF file into memory.

    Raises:
        FileNotFoundError: there is no such file.
    """
    if not os.path.exists(path):
        raise FileNotFoundError(f"no such file: {os.fspath(path)}")
    if not _HAS_DATATREE:
        lazy: Any = az.InferenceData.from_netcdf(os.fspath(path), engine="h5netcdf")
        groups = {name: lazy[name].load() for name in lazy.groups()}
        lazy.close()
        return assemble(groups, attrs=lazy.attrs)
    with xr.open_datatree(path, engine="h5netcdf") as opened:
        return opened.load()


def _plain_ids(ids: Any, name: str) -> np.ndarray:
    """Ids in a dtype that NetCDF can hold: numbers and booleans as they are, else text."""
    index = pd.Index(ids)
    values = index.to_numpy()
    if values.dtype.kind in "biuf":
        return values
    refuse_indistinct(index, f"{name} id")
    return np.asarray([str(value) for value in index], dtype=np.str_)
