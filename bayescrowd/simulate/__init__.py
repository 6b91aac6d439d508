"""Simulated crowds with known truth.

* `assignment`: which worker judges which task.
* `confusions`: confusion matrices of honest workers, spammers and adversaries.
* `labels`: labels drawn from confusion matrices.
* `crowds`: the simulators, such as `crowd` and `sparse_crowd`.
* `hard_tasks`: tasks on which many workers err together.
* `panels`: panels of judges who repeat each other or are misled together.
"""

from bayescrowd.simulate.crowds import crowd as crowd
from bayescrowd.simulate.crowds import full_confusion_crowd as full_confusion_crowd
from bayescrowd.simulate.crowds import one_coin_crowd as one_coin_crowd
from bayescrowd.simulate.crowds import sparse_crowd as sparse_crowd
from bayescrowd.simulate.hard_tasks import with_hard_items as with_hard_items
from bayescrowd.simulate.panels import panel as panel

__all__ = [
    "crowd",
    "full_confusion_crowd",
    "one_coin_crowd",
    "panel",
    "sparse_crowd",
    "with_hard_items",
]
