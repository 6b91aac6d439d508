"""How well the workers of a crowd agree with each other; no truth is needed.

Agreement is computed from the labels alone: `Annotations`, or a table with the columns task, worker
and label. A task is compared if it has two labels or more. Repeated labels by one worker count like
labels by different workers.

* `measures`: percent agreement, Fleiss' kappa, Gwet's AC1 and Krippendorff's alpha.
* `intervals`: `agreement_table`, all measures with intervals by resampling tasks.
* `pairs`: `pairwise_agreement`, every two workers on the tasks that they share.
* `class_scale`: distances between classes that have an order or are numbers.
* `task_sums`: sums over tasks, of which every measure is a function.
"""

from bayescrowd.agreement.intervals import agreement_table
from bayescrowd.agreement.measures import (
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    percent_agreement,
)
from bayescrowd.agreement.pairs import pair_table, pairwise_agreement

__all__ = [
    "agreement_table",
    "fleiss_kappa",
    "gwet_ac1",
    "krippendorff_alpha",
    "pair_table",
    "pairwise_agreement",
    "percent_agreement",
]
