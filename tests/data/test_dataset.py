import numpy as np
import pandas as pd

from bayescrowd import Annotations
from bayescrowd.data.dataset import Dataset
from bayescrowd.data.table_dataset import TableDataset


def test_dataset_says_what_it_is() -> None:
    ann = Annotations.from_matrix([["a", "b"], ["b", None]])
    real = Dataset(ann, None, "two tasks", "tiny", "made up", None)
    assert repr(real) == (
        "Dataset('tiny': Annotations(3 labels: 2 tasks, 2 workers, 2 classes), no truth)"
    )
    known = real._replace(truth=pd.Series({0: "a"}, name="truth"))
    assert repr(known).endswith("truth for 1 tasks)")


def test_dataset_unpacks() -> None:
    ann = Annotations.from_matrix([["a", "b"]])
    annotations, truth, *_ = Dataset(ann, None, "one task", "tiny", "made up", None)
    assert annotations is ann
    assert truth is None


def test_table_says_what_it_is() -> None:
    features = pd.DataFrame({"size": [1, 2, 3], "form": [1.0, np.nan, 2.0]})
    table = TableDataset(features, pd.Series([0, 1, 1]), "three rows", "tiny", "made up")
    assert repr(table) == "TableDataset('tiny': 3 rows, 2 features, 2 classes)"
