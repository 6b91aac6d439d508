"""A fixed set of runs through the public names, recorded at one commit and compared at another.

    python benchmarks/same_results.py record before.json     # at the old commit
    python benchmarks/same_results.py compare before.json    # at the new one

This checks that a refactoring changes no result: labels, chosen features and every other discrete
result must be equal, and numbers must agree to 1e-9. Both runs must be made on the same machine,
since another processor rounds differently and a Markov chain amplifies the difference.
"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bayescrowd as bc

TOLERANCE = 1e-9

AGGREGATORS = [
    *("AutoAggregator", "DawidSkene", "EigenRatio", "EmpiricalBayesDawidSkene", "GLAD"),
    *("GhoshSVD", "KOS", "MACE", "MMSR", "MajorityVote", "OneCoinDawidSkene"),
    *("SelectiveDawidSkene", "SpectralDawidSkene", "Wawa", "WorkerTypes"),
    "ZeroBasedSkill",
]
POLICIES = [
    *("BLeafs", "BiasedRobin", "BudgetedSelection", "ExploreThenCommit", "PosteriorMeanGreedy"),
    *("RoundRobin", "TsGreedy"),
]
CROWD_MODELS = [
    *("ability_dawid_skene", "dawid_skene", "hierarchical_dawid_skene", "item_difficulty"),
    *("mace", "one_coin", "task_subtypes", "worker_types"),
]
COMMANDS = [
    "aggregate LABELS --json",
    "aggregate LABELS --method dawid-skene --json",
    "workers LABELS --json",
    "posterior LABELS --chains 2 --draws 50 --warmup 50 --json",
    "compare LABELS --models dawid_skene,one_coin --chains 2 --draws 50 --warmup 50 --json",
    "budget simulate TABLE --target target --budget 20,40 --features 2 --repeats 3 --json",
    "reproduce list",
    "datasets list",
]


def crowds() -> dict[str, tuple[Any, Any]]:
    """Crowds with gold labels: simulated ones, and published ones if they are available."""
    made = {
        "two classes": bc.simulate.crowd(60, 12, 2, labels_per_task=5, accuracy=0.75, seed=1),
        "four classes": bc.simulate.crowd(80, 15, 4, labels_per_task=6, accuracy=0.7, seed=2),
        "sparse": bc.simulate.sparse_crowd(200, 30, 2, alpha=0.2, accuracy=0.8, seed=3),
    }
    found = {name: (data.annotations, data.truth.iloc[:10]) for name, data in made.items()}
    for name in ("bluebird", "dog") if "BAYESCROWD_DATA" in os.environ else ():
        data = bc.load_dataset(name)
        found[name] = (data.annotations, data.truth.iloc[:10])
    return found


def aggregator_runs() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Runs of every aggregator on every crowd, with and without gold labels."""
    for crowd, (annotations, gold) in crowds().items():
        for name in AGGREGATORS:
            for known in (None, gold):
                aggregator = getattr(bc, name)()
                title = f"{name} on {crowd}{' with gold' if known is not None else ''}"
                yield (
                    title,
                    lambda a=aggregator, d=annotations, g=known: fit_attributes(a.fit(d, gold=g)),
                )


def fit_attributes(aggregator: Any) -> dict[str, Any]:
    """The fitted attributes of an estimator."""
    names = [name for name in dir(type(aggregator)) if name.endswith("_") and name[0] != "_"]
    names = sorted({*names, *(name for name in vars(aggregator) if name.endswith("_"))})
    kept = (pd.DataFrame, pd.Series, np.ndarray, float, int, bool, str, list, tuple)
    found = {name: getattr(aggregator, name, None) for name in names if name[0] != "_"}
    return {name: value for name, value in found.items() if isinstance(value, kept)}


def selection_runs() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Runs of mixtures and selections."""
    annotations, _ = crowds()["four classes"]
    features = bc.simulate.crowd(150, 6, 3, labels_per_task=6, accuracy=0.7, seed=5)
    table = features.annotations.to_frame().pivot(index="task", columns="worker", values="label")
    yield "MDPD", lambda: fit_attributes(bc.MDPD(n_components=3).fit(table))
    for refine in (False, True):
        for crowd, (labels, _) in crowds().items():
            yield (
                f"StagewiseEM on {crowd}{', refined' if refine else ''}",
                lambda r=refine, d=labels: fit_attributes(
                    bc.StagewiseEM(n_components=d.n_classes, refine=r).fit(d)
                ),
            )
    yield "information", lambda: bc.pairwise_mutual_information(annotations)
    selectors = {
        "class": bc.MutualInformationSelector(n_features=4),
        "auto": bc.MutualInformationSelector(),
        "paper": bc.MutualInformationSelector(n_features=4, estimator="paper"),
        "subset": bc.MutualInformationSelector(4, heuristic="subset", estimator="paper"),
    }
    for name, selector in selectors.items():
        yield f"selector {name}", lambda s=selector: fit_attributes(s.fit(annotations))
    yield (
        "curve of selections",
        lambda: bc.selection_curve(
            annotations,
            bc.simulate.crowd(80, 15, 4, labels_per_task=6, accuracy=0.7, seed=2).truth,
            {"paper": bc.MutualInformationSelector(estimator="paper")},
            {"vote": bc.MajorityVote(), "D&S": bc.DawidSkene()},
            sizes=[3, 8, 15],
        ),
    )
    for method in ("full", "scoring"):
        yield f"MultiSelection {method}", lambda m=method: multi_selection(m)


def multi_selection(method: str) -> dict[str, Any]:
    """Number of repeats chosen for judgements with known spread."""
    rng = np.random.default_rng(8)
    quality = rng.normal(size=(60, 5))
    spread = np.array([0.2, 0.5, 1.0, 0.5, 0.2])
    pilot = quality[:, :, None] + spread[:, None] * rng.normal(size=(60, 5, 3))
    estimator = bc.MultiSelection(budget=8, method=method)
    return fit_attributes(estimator.fit(pilot, quality @ [2.0, 1.0, 0.5, 0.0, 0.0]))


def posterior_runs() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Runs of every sampling method of every model."""
    annotations, _ = crowds()["two classes"]
    for name in CROWD_MODELS:
        for method in ("gibbs", "nuts", "svi"):
            yield (
                f"{name} by {method}",
                lambda n=name, m=method: posterior_summary(getattr(bc.models, n), annotations, m),
            )
    features, target = feature_table()
    readings = features.iloc[:60].stack().rename_axis(["item", "feature"]).rename("value")
    readings = pd.concat([readings.reset_index().assign(worker=worker) for worker in range(3)])
    slips = np.random.default_rng(1).random(len(readings)) < 0.2
    readings["value"] = np.where(slips, "mid", readings["value"])
    tables = {"naive_bayes": (features, target), "access_path": (readings, target.iloc[:60])}
    for name, (data, known) in tables.items():
        for method in ("gibbs", "nuts"):
            for given in (known, None):
                yield (
                    f"{name} by {method}{'' if given is None else ', classes known'}",
                    lambda n=name, m=method, d=data, g=given: posterior_summary(
                        getattr(bc.models, n), d, m, g, classes=None if g is not None else 3
                    ),
                )


def posterior_summary(
    model: Any, data: Any, method: str, target: Any = None, classes: int | None = None
) -> dict[str, Any]:
    """Last draws, means and diagnostics of every quantity."""
    options = {} if target is None else {"target": target}
    options |= {} if classes is None else {"classes": classes}
    posterior = bc.sample_posterior(
        model, data, method, chains=2, draws=40, warmup=40, seed=4, progress=False, **options
    )
    dataset = posterior.posterior
    found = {f"{name} mean": dataset[name].values.mean() for name in dataset.data_vars}
    found |= {f"{name} last": dataset[name].values[:, -1] for name in dataset.data_vars}
    if isinstance(data, bc.Annotations):
        found["labels"] = bc.label_posterior(posterior)
        found["workers"] = bc.worker_posterior(posterior)
    return found | {"diagnosis": bc.diagnose(posterior)}


def feature_table(n_rows: int = 300, seed: int = 6) -> tuple[pd.DataFrame, pd.Series]:
    """A labelled table whose features are less and less informative."""
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 3, n_rows)
    columns = {}
    for feature in range(6):
        noise = rng.random(n_rows) < 0.2 + 0.12 * feature
        values = np.where(noise, rng.integers(0, 3, n_rows), target)
        columns[f"f{feature}"] = np.array(["low", "mid", "high"])[values]
    return pd.DataFrame(columns), pd.Series(target, name="target")


def policy_runs() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Runs of every policy under both models, with one label and with three at a time."""
    for name in POLICIES:
        for model, labels in (("naive_bayes", 1), ("access_path", 3)):
            yield f"{name}, {model}", lambda n=name, m=model, k=labels: play_policy(n, m, k)
    yield (
        "curve of budgets",
        lambda: bc.budget_curve(
            [getattr(bc, name) for name in POLICIES],
            table_data(),
            budgets=[20, 60],
            n_features=2,
            repeats=3,
            seed=0,
        ),
    )


def table_data() -> Any:
    """The labelled table as the package's own container."""
    features, target = feature_table()
    return bc.TableDataset(features, target, "a table made up here", "made-up", "none")


def play_policy(name: str, model: str, labels: int) -> dict[str, Any]:
    """Result of one run of a policy, and predictions of the resulting classifier."""
    space = bc.FeatureSpace.from_table(table_data())
    policy = getattr(bc, name)(
        space, budget=45, n_features=2, model=model, labels_per_query=labels, seed=3
    )
    result = bc.simulate_budget(policy, table_data())
    features, _ = feature_table(20, seed=9)
    return {
        "selected": list(result.selected),
        "spending": result.spending,
        "history": result.history,
        "events": [repr(event) for event in policy.events],
        "predicted": result.classifier.predict_proba(features[list(result.selected)]),
    }


def command_runs() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Runs of commands, compared by their output."""
    for command in COMMANDS:
        yield f"bayescrowd {command}", lambda c=command: command_output(c)


def command_output(command: str) -> str:
    """Output and exit code of a command."""
    with tempfile.TemporaryDirectory() as folder:
        labels, table = Path(folder, "labels.csv"), Path(folder, "table.csv")
        crowds()["four classes"][0].to_frame().to_csv(labels, index=False)
        features, target = feature_table()
        features.assign(target=target).to_csv(table, index=False)
        places = {"LABELS": str(labels), "TABLE": str(table)}
        words = [places.get(word, word) for word in command.split()]
        code = "import sys; from bayescrowd.cli import main; sys.exit(main())"
        run = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, cwd=folder
        )
        return (run.stdout + f"\nexit {run.returncode}").replace(folder, "")


def flatten(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield every number and word of a result, by name."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from flatten(part, f"{name} / {key}")
    elif isinstance(value, pd.DataFrame):
        yield f"{name} index", [str(entry) for entry in value.index]
        for column in value.columns:
            yield from flatten(value[column].to_numpy(), f"{name} / {column}")
    elif isinstance(value, pd.Series):
        yield f"{name} index", [str(entry) for entry in value.index]
        yield from flatten(value.to_numpy(), name)
    elif hasattr(value, "_asdict"):
        yield from flatten(value._asdict(), name)
    else:
        array = np.asarray(value)
        if array.dtype.kind in "fiub":
            yield name, array.astype(float).ravel().tolist()
        else:
            yield name, [str(entry) for entry in np.asarray(value, dtype=object).ravel()]


def all_runs() -> Iterator[tuple[str, Any]]:
    """Yield every number and word of every run; an error counts as its message."""
    for runs in (aggregator_runs, selection_runs, posterior_runs, policy_runs, command_runs):
        for name, run in runs():
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                try:
                    value = run()
                except (ValueError, TypeError) as error:
                    value = f"{type(error).__name__}: {error}"
            print(name, file=sys.stderr)
            yield from flatten(value, name)


def difference(old: list[Any], new: list[Any]) -> float:
    """Largest relative difference of two lists; infinite if words or lengths differ.

    The duration of a run is not compared.
    """
    old, new = (
        [
            re.sub(r'"seconds": [^,\n]*', "", entry) if isinstance(entry, str) else entry
            for entry in run
        ]
        for run in (old, new)
    )
    numbers = all(isinstance(entry, float) for entry in [*old, *new])
    if len(old) != len(new) or not numbers:
        return 0.0 if old == new else np.inf
    one, other = np.array(old), np.array(new)
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore"):
        distance = np.abs(one - other) / np.maximum(1.0, np.abs(one))
    return float(np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance)).max(initial=0))


def main() -> int:
    """Record the runs, or compare them with a record."""
    action, path = sys.argv[1], Path(sys.argv[2])
    found = dict(all_runs())
    if action == "record":
        path.write_text(json.dumps(found))
        print(f"{len(found)} results recorded")
        return 0
    recorded = json.loads(path.read_text())
    worst = 0.0
    changed = sorted(recorded.keys() ^ found.keys())
    for name in changed:
        print(f"{'new' if name in found else 'gone'}: {name}")
    for name in sorted(recorded.keys() & found.keys()):
        distance = difference(recorded[name], found[name])
        worst = max(worst, distance if np.isfinite(distance) else worst)
        if distance > TOLERANCE:
            print(f"{distance:.2e} {name}")
            changed.append(name)
            if not np.isfinite(distance):
                print(f"  was {str(recorded[name])[:200]}\n  is  {str(found[name])[:200]}")
    print(f"{len(found)} results, {len(changed)} changed, largest distance {worst:.1e}")
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main())
