"""crowd-kit's aggregators for labels of classes, on this package's estimators: change one import.

    from crowdkit.aggregation import DawidSkene    # before
    from bayescrowd.crowdkit import DawidSkene     # after

Names, order of arguments, methods, attributes and the names of their indices are those of crowd-kit
1.4; tables are pandas tables with the columns task, worker and label. crowd-kit is not needed.

* `answers`: the table of labels, coded; what all classes of this folder share.
* `votes`: `MajorityVote`, `Wawa`, `ZeroBasedSkill` and `GoldMajorityVote`.
* `dawid_skene`: `DawidSkene` and `OneCoinDawidSkene`.
* `estimators`: `GLAD`, `MACE`, `MMSR` and `KOS`, which wrap the classes of the same names in
  `bayescrowd`.

As in crowd-kit, a tie goes to the class that comes first in sorted order; in `MACE`, to the class
that the table names first. The votes, Dawid–Skene and one coin compute what crowd-kit computes, to
rounding, except:

* Classes within 1e-9 of the largest probability tie. In crowd-kit, the rounding of a sum of weights
  may decide a tie, and with pandas 3 the order of rows.
* With negative weights, the largest sum decides. crowd-kit divides by the total of the task first,
  which turns the order around where the total is negative.
* EM stops by the gain of the log-likelihood per label. crowd-kit stops by a bound that counts the
  class prior once per label, and may stop at another iteration. `loss_history_` holds the
  log-likelihood per label, nats.
* A task whose workers all have weight 0 has even probabilities, where crowd-kit has NaN.
* `initial_error` without a strategy is refused, where crowd-kit ignores it.
* Rows without a label are left out; rows without a task or a worker are refused. crowd-kit leaves
  out or keeps either, depending on the class.
* Gold labels of tasks without labels, or of classes that nobody chose, cause a `TruthWarning`.
* On an empty table every class has empty results.

The other four define the same models and differ from crowd-kit in these points:

* `GLAD` maximises the same objective by its own steps, so `m_step_max_iter` and `m_step_tol` mean
  nothing here; neither do its priors, which are the paper's: an even class prior, and N(1, 1) for
  abilities and log easiness.
* `MACE` starts from the votes, and draws only the further restarts. `thetas_` and `spamming_` are
  posterior means, whose rows sum to 1; crowd-kit's are the weights of variational Bayes, whose rows
  sum to less. The Beta prior is symmetric: `alpha` must equal `beta`. crowd-kit never reads
  `smoothing`.
* `MMSR` starts from equal skills, takes signs from the leading eigenvector, and trims as many
  neighbours as the paper's program, so that skills may differ where crowd-kit's random start or its
  graph of signs leads elsewhere.
* `KOS` scales messages to prevent overflow, chooses the sign that agrees with most labels, and
  draws its first messages from another generator. crowd-kit raises KeyError on a tie.

A parameter that means nothing here raises ValueError unless it has its default. `random_state` is
accepted everywhere; `MMSR` draws nothing. crowd-kit's classes for texts, images, embeddings, pairs
and several labels per task have no counterpart.
"""

from bayescrowd.crowdkit.dawid_skene import DawidSkene, OneCoinDawidSkene
from bayescrowd.crowdkit.estimators import GLAD, KOS, MACE, MMSR
from bayescrowd.crowdkit.votes import GoldMajorityVote, MajorityVote, Wawa, ZeroBasedSkill

__all__ = [
    "GLAD",
    "KOS",
    "MACE",
    "MMSR",
    "DawidSkene",
    "GoldMajorityVote",
    "MajorityVote",
    "OneCoinDawidSkene",
    "Wawa",
    "ZeroBasedSkill",
]
