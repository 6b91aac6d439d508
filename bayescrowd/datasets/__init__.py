"""Named public data sets.

* `registry`: the list of data sets, and the functions that load them.
* `public_files`: finding, downloading and checking the files.
* `ct_slices`: the table of CT slices from the UCI repository.
* `cub_birds`: the Caltech-UCSD birds with the attributes that workers saw.
"""

from bayescrowd.data.dataset import Dataset as Dataset
from bayescrowd.data.table_dataset import TableDataset as TableDataset
from bayescrowd.datasets.registry import catalogue as catalogue
from bayescrowd.datasets.registry import dataset_names as dataset_names
from bayescrowd.datasets.registry import fetch as fetch
from bayescrowd.datasets.registry import is_local as is_local
from bayescrowd.datasets.registry import load_dataset as load_dataset
from bayescrowd.datasets.registry import load_table as load_table

__all__ = [
    "Dataset",
    "TableDataset",
    "catalogue",
    "dataset_names",
    "fetch",
    "is_local",
    "load_dataset",
    "load_table",
]
