"""The container builds, reads, saves and loads the same on either ArviZ."""

import os
import subprocess
import sys
from pathlib import Path

import arviz as az
import numpy as np
import pandas as pd
import pytest

from bayescrowd.posterior.container import assemble, dataset_of, group_names, group_of, load, save


def small(workers, classes=("no", "yes")):
    rng = np.random.default_rng(0)
    coords = {"worker": workers, "cls": list(classes), "task": [1, 2]}
    posterior = dataset_of(
        {"skill": (("chain", "draw", "worker", "cls"), rng.random((2, 5, len(workers), 2)))},
        coords=coords,
    )
    labels = dataset_of({"probability": (("chain", "task", "cls"), rng.random((2, 2, 2)))})
    return assemble({"posterior": posterior, "label_posterior": labels}, attrs={"model": "m"})


def test_groups_are_those_given():
    post = small(["ann", "bob"])
    assert set(group_names(post)) == {"posterior", "label_posterior"}
    assert post.posterior["skill"].dims == ("chain", "draw", "worker", "cls")
    assert post["posterior"]["skill"].sel(worker="bob", cls="yes").shape == (2, 5)


def test_only_coordinates_of_the_dimensions_are_kept():
    group = group_of(small(["ann", "bob"]), "posterior")
    assert set(group.coords) == {"chain", "draw", "worker", "cls"}
    assert group["draw"].to_numpy().tolist() == [0, 1, 2, 3, 4]


IDS = {
    "text": ["w10", "w2"],
    "integers": [7, 3],
    "object text": pd.Index(["ä", "b c"], dtype=object),
    "pandas strings": pd.Index(["x", "y"], dtype="string"),
    "booleans": [False, True],
    "floats": [0.5, 1.5],
}


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_saved_containers_come_back(tmp_path, ids):
    post = small(ids)
    save(post, tmp_path / "fit.nc")
    again = load(tmp_path / "fit.nc")
    assert type(again) is type(post)
    assert set(group_names(again)) == set(group_names(post))
    for name in group_names(post):
        before, after = group_of(post, name), group_of(again, name)
        assert after.equals(before)
        for dim in before.indexes:
            assert list(after.indexes[dim]) == list(before.indexes[dim])
    assert again.attrs["model"] == "m"


def test_a_file_can_be_overwritten_after_loading(tmp_path):
    path = tmp_path / "fit.nc"
    save(small(["ann"]), path)
    load(path)
    save(small(["bob"]), path)
    assert load(path)["posterior"]["worker"].to_numpy().tolist() == ["bob"]


def test_arviz_reads_the_container():
    assert len(az.summary(small(["ann", "bob"]), kind="stats")) == 4


def test_unknown_group_names_those_there_are():
    with pytest.raises(ValueError, match=r"no group 'prior'; it has posterior, label_posterior"):
        group_of(small(["a", "b"]), "prior")


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match=r"sample_posterior returns, got dict"):
        group_of({"posterior": {}}, "posterior")


def test_nothing_makes_no_container():
    with pytest.raises(ValueError, match="no groups"):
        assemble({})


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no\.nc"):
        load(tmp_path / "no.nc")


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["3", "3\0"], "holds a NUL character"),
        (pd.Index([3, "3"], dtype=object), "item id 3 and item id '3' are written alike"),
    ],
)
def test_ids_that_a_file_could_not_tell_apart(ids, message):
    with pytest.raises(ValueError, match=message):
        dataset_of({"p": (("item",), np.zeros(2))}, coords={"item": ids})


FULL_DISK = """
import resource
import numpy as np
from bayescrowd.posterior.container import assemble, dataset_of, save
draws = np.random.default_rng(0).normal(size=(2, 5000))
post = assemble({"posterior": dataset_of({"rate": (("chain", "draw"), draws)})})
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
try:
    save(post, "fit.nc")
except OSError as fault:
    print(fault)
"""


def test_a_full_disk_names_the_file_and_leaves_nothing(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.returncode == 0, done.stderr  # HDF5 itself would end in a segmentation fault
    assert done.stdout == "[Errno 27] File too large: 'fit.nc'\n"
    assert os.listdir(tmp_path) == []
