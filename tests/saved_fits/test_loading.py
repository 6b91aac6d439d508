"""Fits that survive the process, checked on every aggregator that the package exports."""

import dataclasses
import inspect
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.aggregation.protocol import Aggregator
from bayescrowd.saving.archive import read_archive, write_archive
from bayescrowd.saving.fit_file import FORMAT
from bayescrowd.saving.state import parts_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

AGGREGATORS = [
    kind
    for kind in (getattr(bc, name) for name in bc.__all__ if name[0].isupper())
    if inspect.isclass(kind) and issubclass(kind, Aggregator)
]

# Labels are text that is no ASCII, and ids of workers are of two types.
ANSWERS = ("chat", "poulét", "猫")


def crowd(n_tasks=30, seed=0):
    """Labels with text as classes, integers as tasks, and workers of both types."""
    data = bc.simulate.crowd(n_tasks, 6, 3, labels_per_task=4, accuracy=0.8, seed=seed)
    frame = data.annotations.to_frame()
    frame["label"] = [ANSWERS[label] for label in frame["label"]]
    frame["worker"] = [worker if worker < 3 else f"w {worker}" for worker in frame["worker"]]
    return frame


def new_tasks():
    frame = crowd(12, seed=1).assign(task=lambda table: "new-" + table["task"].astype(str))
    frame.loc[::5, "worker"] = "a stranger"
    return frame


def assert_same(one, other, where="fit"):
    """The same values of the same types, to the last bit; looks into objects of the package."""
    assert type(one) is type(other), where
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, where
        assert one.flags.writeable == other.flags.writeable, where
        np.testing.assert_array_equal(one, other, err_msg=where)
    elif isinstance(one, pd.Index):
        pd.testing.assert_index_equal(one, other, exact=True, obj=where)
        assert [type(value) for value in one] == [type(value) for value in other], where
    elif isinstance(one, pd.Series):
        pd.testing.assert_series_equal(one, other, check_exact=True, obj=where)
        assert_same(one.index, other.index, where)
    elif isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other, check_exact=True, obj=where)
        assert_same(one.columns, other.columns, where)
    elif isinstance(one, dict):
        assert list(one) == list(other), where
        for key in one:
            assert_same(one[key], other[key], f"{where}[{key!r}]")
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where
        for place, (part, twin) in enumerate(zip(one, other, strict=True)):
            assert_same(part, twin, f"{where}[{place}]")
    elif dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name), field.name)
    elif type(one).__module__.startswith("bayescrowd"):
        assert_same(parts_of(one), parts_of(other), where)
    else:
        assert one == other or (one != one and other != other), where


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Every aggregator, fitted without and with gold, its file, and its answer to new tasks."""
    folder = tmp_path_factory.mktemp("fits")
    gold = {0: "chat", 3: "猫", 4: "poulét"}
    found = {}
    for kind in AGGREGATORS:
        for name, known in (("", None), (" with gold", gold)):
            est = kind(seed=3).fit(crowd(), gold=known)
            path = folder / f"{kind.__name__}{name}.npz"
            est.save(path)
            found[kind.__name__ + name] = est, path, est.predict_proba(new_tasks())
    return found


NAMES = [kind.__name__ + gold for kind in AGGREGATORS for gold in ("", " with gold")]


@pytest.mark.parametrize("name", NAMES)
def test_everything_survives(name, saved):
    est, path, probas = saved[name]
    back = bc.load(path)
    assert_same(est, back)
    assert back.get_params() == est.get_params()
    pd.testing.assert_frame_equal(back.confusions_, est.confusions_, check_exact=True)
    pd.testing.assert_frame_equal(back.predict_proba(new_tasks()), probas, check_exact=True)
    worker = est.workers_[0]
    pd.testing.assert_frame_equal(back.confusion_of(worker), est.confusion_of(worker))


def test_a_fresh_process_predicts_the_same_to_the_last_bit(saved, tmp_path):
    new_tasks().to_json(tmp_path / "new.json", orient="records")
    program = """
import json, sys
import pandas as pd
import bayescrowd as bc
new = pd.DataFrame(json.load(open(sys.argv[1], encoding="utf-8")))
print(json.dumps([bc.load(path).predict_proba(new).to_numpy().tolist() for path in sys.argv[2:]]))
"""
    paths = [str(path) for _, path, _ in saved.values()]
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "new.json"), *paths],
        capture_output=True,
        text=True,
        check=True,
    )
    for (_, _, probas), answer in zip(saved.values(), json.loads(done.stdout), strict=True):
        np.testing.assert_array_equal(probas.to_numpy(), np.array(answer))


@pytest.mark.parametrize(
    "ids",
    [
        [1, 2, 3],
        [True, False],
        ["a", "b"],
        [1, "b", 2.5],
        pd.Index([1, 2, 3], dtype=np.int16),
        pd.RangeIndex(5, 11, 2),
        pd.DatetimeIndex(["2024-01-01", "2025-02-03"]),
    ],
    ids=str,
)
def test_ids_keep_their_types(ids, tmp_path):
    codes = np.arange(len(ids))
    ann = bc.Annotations.from_codes(
        *([codes] * 3), tasks=ids, workers=ids, classes=[f"{x}" for x in ids]
    )
    est = bc.MajorityVote().fit(ann)
    est.save(tmp_path / "fit.npz")
    back = bc.load(tmp_path / "fit.npz")
    assert_same(est.probas_.index, back.probas_.index)
    assert_same(est.workers_, back.workers_)


def test_a_restored_fit_can_be_sampled_and_fitted_again(saved):
    est, path, _ = saved["DawidSkene with gold"]
    back = bc.load(path)
    assert_same(est._gold, back._gold)
    pd.testing.assert_frame_equal(
        back.fit(crowd(seed=5)).probas_, bc.DawidSkene(seed=3).fit(crowd(seed=5)).probas_
    )


def test_equal_fits_make_equal_files(saved, tmp_path):
    _, path, _ = saved["GLAD"]
    bc.GLAD(seed=3).fit(crowd()).save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


def test_numpy_opens_the_file_without_pickle(saved):
    with np.load(saved["BWA"][1], allow_pickle=False) as arrays:
        assert all(arrays[name].dtype.kind in "biufu" for name in arrays if "array" in name)


# Files that are refused.


@pytest.fixture
def path(saved, tmp_path):
    """A copy of a file of a fit, to be damaged."""
    copy = tmp_path / "fit.npz"
    copy.write_bytes(saved["DawidSkene"][1].read_bytes())
    return copy


def rewritten(path, **header):
    """The same file with another header."""
    archive = read_archive(path, "fit")
    write_archive(path, archive.header | header, archive.arrays, overwrite=True)
    return path


def test_a_newer_format_is_refused(path):
    rewritten(path, format=FORMAT + 1, bayescrowd="99.0")
    with pytest.raises(ValueError, match=r"saved in format 2 by bayescrowd 99\.0, but bayescrowd "):
        bc.load(path)


def test_the_same_format_of_a_newer_version_is_read(path):
    assert bc.load(rewritten(path, bayescrowd="99.0")).get_params()["seed"] == 3


@pytest.mark.parametrize(
    "name", ["Nobody", "Annotations", "StagewiseEM", "_MixtureOfWorkers", "load", "os", None, 3]
)
def test_only_exported_aggregators_are_made(name, path):
    with pytest.raises(ValueError, match="does not have"):
        bc.load(rewritten(path, estimator=name))


def test_only_the_classes_of_a_fit_are_made(path):
    for name in ("Popen", "GoldTilt", "Aggregator"):
        node = {"type": "object", "class": name, "fields": {"args": "ls"}}
        with pytest.raises(ValueError, match="but it is damaged"):
            bc.load(rewritten(path, nodes=[node]))


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.9, 0.999])
def test_a_truncated_file_is_refused(share, path):
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(
        ValueError, match=r"fit\.npz: expected a fit saved by bayescrowd, but it is"
    ):
        bc.load(path)


def outcome(path):
    """The restored fit, or the message of what is wrong."""
    try:
        return bc.load(path)
    except ValueError as fault:
        return str(fault)


def test_a_changed_byte_is_noticed_or_harmless(path):
    """Harmless where it is the date of a part, say."""
    data, before, messages = bytearray(path.read_bytes()), bc.load(path), []
    for place in range(200, len(data), len(data) // 40):
        data[place] ^= 255
        path.write_bytes(data)
        found = outcome(path)
        if isinstance(found, str):
            messages.append(found)
        else:
            assert_same(before, found)
        data[place] ^= 255
    assert len(messages) > 20
    pattern = r"[^\n]*expected a fit saved by bayescrowd, but [^\n]*"
    assert all(re.fullmatch(pattern, message) for message in messages)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"task,worker,label\n", "another kind"),
        (b"\x80\x04K\x01.", "another"),
    ],
)
def test_a_file_of_another_kind_is_refused(content, reason, path):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=reason):
        bc.load(path)


def test_other_archives_are_refused(path):
    np.savez(path, probas=np.eye(2))
    with pytest.raises(ValueError, match="a ZIP archive of another kind"):
        bc.load(path)
    write_archive(path, {"kind": "something else"}, {}, overwrite=True)
    with pytest.raises(ValueError, match="a ZIP archive of another kind"):
        bc.load(path)


def test_a_zip_bomb_is_refused_before_it_is_read(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("array-0.npy", bytes(10**7))
    with pytest.raises(ValueError, match="its parts are compressed or larger than the file"):
        bc.load(path)


def test_an_array_that_claims_to_be_larger_is_refused(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", "{}")
        text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({10**15},), }}"
        head = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()
        archive.writestr("array-0.npy", head)
    with pytest.raises(ValueError, match=r"its array array-0\.npy is damaged"):
        bc.load(path)


def test_pickled_arrays_are_refused(path):
    np.savez(path, **{"array-0": np.array([{}], dtype=object)})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("header.json", "{}")
    with pytest.raises(ValueError, match=r"its array array-0\.npy holds no numbers"):
        bc.load(path)


def test_a_wrong_parameter_is_refused(path):
    header = read_archive(path, "fit").header
    with pytest.raises(ValueError, match="but it is damaged"):
        bc.load(rewritten(path, state=header["state"] | {"n_iter": "many"}))


# The format.

LAYOUT = Path(__file__).with_name("layout.json")
"""The fields that fits hold in the current format, by class."""


def layout(paths):
    """The fields in files of fits, by class."""
    found = {}
    for path in paths:
        header = read_archive(path, "fit").header
        found.setdefault(header["estimator"], set()).update(header["state"])
        for node in header["nodes"]:
            if node["type"] == "object":
                found.setdefault(node["class"], set()).update(node["fields"])
    return {name: sorted(fields) for name, fields in sorted(found.items())}


def test_the_format_rises_with_what_fits_hold(saved):
    """Old files would otherwise be restored without a field; a new class changes no old file."""
    recorded = json.loads(LAYOUT.read_text(encoding="utf-8"))
    assert recorded["format"] == FORMAT
    found = layout(path for _, path, _ in saved.values())
    changed = {name: found.get(name) for name in recorded["fields"]} != recorded["fields"]
    assert not changed, f"raise FORMAT if files of {FORMAT} are in use, then record: {found}"


# Saving.


def test_saving_replaces_nothing_unless_asked(path):
    est, before = bc.MajorityVote().fit(crowd()), path.read_bytes()
    with pytest.raises(FileExistsError, match="the file exists"):
        est.save(path)
    assert path.read_bytes() == before
    est.save(path, overwrite=True)
    assert isinstance(bc.load(path), bc.MajorityVote)
    assert list(path.parent.iterdir()) == [path]


def test_an_unfitted_estimator_has_nothing_to_save(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        bc.DawidSkene().save(tmp_path / "fit.npz")


def test_what_cannot_be_saved_is_named_and_nothing_is_written(tmp_path):
    frame = crowd()
    frame["task"] = [complex(task, 1) for task in frame["task"]]
    with pytest.raises(TypeError, match="cannot be saved"):
        bc.MajorityVote().fit(frame).save(tmp_path / "fit.npz")

    class Own(bc.MajorityVote):
        pass

    with pytest.raises(TypeError, match="expected an estimator that bayescrowd exports"):
        Own().fit(crowd()).save(tmp_path / "fit.npz")
    assert list(tmp_path.iterdir()) == []
