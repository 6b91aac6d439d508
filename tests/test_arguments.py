"""Every public constructor, function and method refuses wrong arguments by name.

What is tried is read from the signatures: a new class, function, method or parameter is tried
without a line here. Only what has no default needs an example, by its name, in `examples`. The
calls run in a process of their own, without the hook that checks types in the other tests: users
have none.
"""

import builtins
import collections.abc
import inspect
import json
import math
import subprocess
import sys
import types
import typing
import warnings
from collections.abc import Hashable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, Union

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
SUBMODULES = ("simulate", "metrics", "datasets", "plots")


class Strange:
    """Of a type that nobody expects."""

    def __repr__(self) -> str:
        return "<something strange>"


class Case(typing.NamedTuple):
    """One wrong argument."""

    name: str
    value: Any
    is_data: bool
    """Whether it may be many things, which a message may call by another name: 'the labels'."""


@cache
def targets() -> dict[str, Any]:
    """What a user can call, by its name; a method as its class and its name."""
    import bayescrowd as bc
    from bayescrowd.budgeted.classifier import Classifier

    found = {name: getattr(bc, name) for name in bc._NAMES}
    for module in SUBMODULES:
        part = import_module(f"bayescrowd.{module}")
        found |= {f"{module}.{name}": getattr(part, name) for name in part.__all__}
    for module in bc.models.__all__:
        part = import_module(f"bayescrowd.models.{module}")
        public = {name: getattr(part, name) for name in part.__all__}
        found |= {f"models.{module}.{k}": v for k, v in public.items() if inspect.isfunction(v)}
    classes = [call for call in found.values() if inspect.isclass(call)]
    found |= methods([*classes, Classifier])
    # What only holds what it is given has nothing to refuse; nor has the category of a warning.
    return {name: call for name, call in found.items() if not _is_record(call)}


def methods(classes: list[type]) -> dict[str, Any]:
    """The public methods of the classes with arguments, inherited ones once."""
    found: dict[str, Any] = {}
    for owner in classes:
        for name, member in inspect.getmembers(owner, callable):
            function = inspect.unwrap(getattr(member, "__func__", member))
            home = getattr(function, "__module__", None) or ""
            if name.startswith("_") or not home.startswith("bayescrowd"):
                continue
            if issubclass(owner, tuple) or len(inspect.signature(function).parameters) < 2:
                continue
            found.setdefault(function, (f"{owner.__name__}.{name}", owner, name))
    return {
        label: getattr(owner, name) if inspect.ismethod(getattr(owner, name)) else (owner, name)
        for label, owner, name in found.values()
    }


def _is_record(call: Any) -> bool:
    if not inspect.isclass(call):
        return False
    return issubclass(call, tuple | Warning) or call.__name__ == "Annotations"


def names_of_targets() -> list[str]:
    return list(targets())


def cases(call: Any) -> Iterator[Case]:
    """Wrong values of every argument, by its annotation."""
    for parameter in inspect.signature(call).parameters.values():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        kinds = list(alternatives(call, resolved(call, parameter.annotation)))
        for value in wrong_values(kinds, parameter):
            yield Case(parameter.name, value, Any in kinds or isinstance(value, pd.DataFrame))


class Scope(dict[str, Any]):
    """The names of a module; a class that is imported for type checkers alone is made up."""

    def __missing__(self, name: str) -> type:
        if hasattr(builtins, name):
            raise KeyError(name)
        return type(name, (), {"__class_getitem__": classmethod(lambda cls, _: cls)})


def resolved(call: Any, annotation: Any) -> Any:
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if not isinstance(annotation, str):
        return annotation
    function = inspect.unwrap(call.__init__ if inspect.isclass(call) else call)
    function = getattr(function, "__func__", function)
    names = getattr(function, "__globals__", {}) | vars(sys.modules[call.__module__])
    return eval(annotation, {}, Scope(names))


def alternatives(call: Any, annotation: Any) -> Iterator[Any]:
    """The parts of a union, with choices and ranges as they are declared."""
    annotation = resolved(call, annotation)
    if typing.get_origin(annotation) in (Union, types.UnionType):
        for part in typing.get_args(annotation):
            yield from alternatives(call, part)
    else:
        yield annotation


def wrong_values(kinds: list[Any], parameter: inspect.Parameter) -> list[Any]:
    """What no alternative takes."""
    bare = [typing.get_args(k)[0] if typing.get_origin(k) is Annotated else k for k in kinds]
    if bare == [None]:  # ignored, for scikit-learn's pipelines
        return []
    if Any in bare or Hashable in bare or any(isinstance(kind, typing.TypeVar) for kind in bare):
        return [Strange()] if parameter.default is parameter.empty and Any in bare else []
    wrong: list[Any] = [Strange()]
    numbers, choices = {int, float} & set(bare), [k for k in bare if is_choice(k)]
    if type(None) not in bare:
        wrong.append(None)
    if numbers or choices:
        wrong += [math.nan, np.array([[1.0, 2.0]])[0] if not takes_arrays(bare) else Strange()]
    if numbers and bool not in bare:
        wrong.append(True)
    if numbers == {int}:
        wrong.append(1.5)
        wrong.append(-2)  # -1 says 'all of them' where it is an answer
    if numbers and str not in bare:
        wrong.append("a")
    if choices:
        wrong.append("no such choice")
    if bool in bare:
        wrong += ["a", 2]
    if str in bare and not numbers:
        wrong.append(5)
    if parameter.name == "seed":
        wrong += [-1, 2**70]
    wrong += [value for kind in kinds for value in out_of_range(kind)]
    wrong += [value for kind in bare for value in wrong_arrays(kind)]
    wrong += [value for kind in bare for value in wrong_entries(kind)]
    wrong += [value for kind in bare for value in wrong_records(kind)]
    return wrong


def wrong_arrays(kind: Any) -> Iterator[Any]:
    """Arrays of a wrong shape, of text, of NaN and of negative numbers, in shapes of the data."""
    inside = typing.get_args(kind)
    is_list = typing.get_origin(kind) is collections.abc.Sequence and inside[0] is float
    if kind is not np.ndarray and not hasattr(kind, "array_type") and not is_list:
        return
    if "*" not in getattr(kind, "dim_str", ""):
        yield np.ones((1, 1, 1, 1, 1))
    yield [[1.0], [1.0, 2.0]]
    dtypes = getattr(kind, "dtypes", ("float64",))
    is_float = isinstance(dtypes, tuple) and "float64" in dtypes
    is_float &= getattr(kind, "array_type", np.ndarray) is np.ndarray  # JAX's may be logarithms
    for shape in [(2,), (6,), (2, 2), (6, 2, 2), (12, 6)]:
        if isinstance(dtypes, tuple):
            yield np.full(shape, "a")
        if is_float:
            yield np.full(shape, math.nan)
            yield np.full(shape, -1.0)


def wrong_entries(kind: Any) -> Iterator[Any]:
    """Mappings, series and tables with wrong entries."""
    inside = typing.get_args(kind)
    if typing.get_origin(kind) is collections.abc.Mapping and inside[1] is float:
        for key in (0, "a"):
            for value in ("text", math.nan, -1.0, None):
                yield {key: value}
                yield pd.Series({key: value})
    if kind is pd.DataFrame:
        yield pd.DataFrame({"nothing": ["text"]})


def wrong_records(kind: Any) -> Iterator[Any]:
    """Priors with one wrong field each."""
    if getattr(kind, "__name__", None) == "Prior":
        for name in kind._fields:
            # None is right where a field is None by default
            nothing = () if kind._field_defaults[name] is None else (None,)
            for value in ("a", math.nan, math.inf, *nothing):
                yield kind()._replace(**{name: value})
        yield kind()._replace(**{kind._fields[0]: -1.0})


def is_choice(kind: Any) -> bool:
    return typing.get_origin(kind) is Literal


def takes_arrays(kinds: list[Any]) -> bool:
    return any(kind is np.ndarray or hasattr(kind, "array_type") for kind in kinds) or any(
        typing.get_origin(kind) is not None and not is_choice(kind) for kind in kinds
    )


def out_of_range(kind: Any) -> list[Any]:
    """Numbers just outside a declared range."""
    if typing.get_origin(kind) is not Annotated:
        return [math.inf] if kind is float else []
    base, declared = typing.get_args(kind)[:2]
    if base is int:
        ends = (declared.least, -1), (declared.most, 1)
        return [end + step for end, step in ends if end is not None]
    below = declared.least if declared.without_least else declared.least - 0.5
    above = declared.most if declared.without_most else declared.most + 0.5
    return [end for end in (below, above) if not declared.accepts(end)]


@cache
def examples() -> dict[str, Any]:
    """A good value of each argument without a default, by its name."""
    import bayescrowd as bc
    from bayescrowd.budgeted.evaluation.planning import BudgetPlan
    from bayescrowd.posterior.checks import CrowdChecks

    crowd = bc.simulate.crowd(12, 6, 2, seed=1)
    table = pd.DataFrame({"a": [*"xyxyxyxy"], "b": [*"uuvvuuvv"], "kind": [*"ststssts"]})
    space = bc.FeatureSpace.from_table(table, target="kind")
    policy = bc.BLeafs(space, 8, 1)
    est = bc.aggregate(crowd.annotations)
    codes = np.array([0, 0, 1, 1])
    judgements = judgements_and_target()
    return {
        "n_tasks": 12,
        "share": 0.5,
        "n_workers": 6,
        "alpha": 0.5,
        "data": crowd.annotations,
        "with_hard_items.data": crowd,
        "demo.data": crowd,
        "frame": crowd.annotations.to_frame(),
        "truth": crowd.truth,
        "prediction": est.labels_,
        "probas": est.probas_,
        "est": est,
        "stagewise_course.est": bc.StagewiseEM(2).fit(crowd.annotations),
        "quantity": "log_likelihood",
        "worker": 0,
        "parameters": crowd.parameters,
        "fitted": {"MV": est},
        "best": "MV",
        "n_components": 2,
        "mixture": bc.MDPD(2, n_init=1).fit(crowd.annotations),
        "information": bc.pairwise_mutual_information(crowd.annotations),
        "selector": bc.MultiSelection(4).fit(*judgements),
        "score_curve.selector": bc.MutualInformationSelector().fit(crowd.annotations),
        "space": space,
        "budget": 8,
        "n_features": 1,
        "policies": [bc.TsGreedy],
        "table": table,
        "budgets": [4],
        "policy": policy,
        "plan_budget.policy": "A",
        "plan": BudgetPlan("reached", 4.0, 3.0, 5.0, "", 0.1, pd.DataFrame()),
        "result": bc.simulate_budget(policy, table, target="kind"),
        "feature": "a",
        "classes": ["s", "t"],
        "features": {"a": ["x", "y"]},
        "matrix": [["a", "b"], ["b", "b"]],
        "task": codes,
        "from_codes.worker": codes,
        "label": 1 - codes,
        "tasks": 2,
        "workers": 2,
        "path": ROOT / "README.md",
        "annotations": crowd.annotations,
        "name": "bluebird",
        "model": bc.models.dawid_skene,
        "selectors": {"score": bc.MutualInformationSelector()},
        "aggregators": {"MV": bc.MajorityVote()},
        "within": 0.1,
        "curve": pd.DataFrame({"policy": ["A"]}),
        "report": bc.panel_report(crowd.annotations, crowd.truth, most_dropped=1),
        "scores": pd.DataFrame({"MV": [0.1, 0.2]}),
        "difference": pd.DataFrame({"MV": [0.1, 0.2]}),
        "standard_error": pd.DataFrame({"MV": [0.1, 0.2]}),
        "reference": "A",
        "gold": crowd.truth,
        "posteriors": {},
        "post": None,
        "at": {"feature_value": "a=x"},
        "rng": np.random.default_rng(0),
        "ModelSampler.model": bc.models.naive_bayes.model,
        "judgements": judgements[0],
        "y": judgements[1],
        "MultiSelectionClassifier.y": judgements[1] > 0,
        "ids": [0, 1],
        "n": 2,
        "query": 1,
        "answers": "x",
        "events": (),
        "value": "x",
        "column": table["a"],
        "instances": table,
        "target": "s",
        "against": "t",
        "from_table.target": "kind",
        "budget_curve.target": "kind",
        "refit.budget": 4,
        "code.target": "kind",
        "code_truth.name": "truth",
        "take.features": [0],
        "take.classes": [0, 1],
        "probabilities.labels": {},
        "n_judgements": 60,
        "checks": CrowdChecks(*[None] * len(CrowdChecks._fields)),
    }


def judgements_and_target() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 3, 4)), rng.normal(size=30)


@cache
def instance(owner: type) -> Any:
    """An object of the class that is ready to be used."""
    if owner.__name__ == "Annotations":
        return examples()["data"]
    if owner.__name__ == "Classifier":
        return examples()["policy"].classifier()
    made = owner(**required(owner))
    if hasattr(made, "ask"):
        made.ask()  # the query 1, which stays open
    return made.fit(*fitting_data(owner)) if hasattr(made, "fit") else made


def required(call: Any) -> dict[str, Any]:
    """Good values of the arguments without a default."""
    parameters = inspect.signature(call).parameters.values()
    named = [p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    known = examples()
    if call.__module__.startswith("bayescrowd.models."):
        known = known | examples_of_model(call.__module__)
    own = {p.name: f"{call.__name__}.{p.name}" for p in named}
    return {
        p.name: known[own[p.name] if own[p.name] in known else p.name]
        for p in named
        if p.default is p.empty or own[p.name] in known
    }


@cache
def examples_of_model(module: str) -> dict[str, Any]:
    """Arguments of a model's functions: a small draw from the model."""
    import jax
    import jax.numpy as jnp

    model = import_module(module)
    four = jnp.array([0, 0, 1, 1])
    sizes = {"n_items": 2, "n_workers": 2, "n_groups": 1, "n_attributes": 2}
    known = {
        "rng_key": jax.random.key(0),
        "n_classes": 2,
        "n_values": (2, 2),
        **sizes,
        **dict.fromkeys(("item", "reading"), four),
        **dict.fromkeys(("worker", "feature", "attribute"), jnp.array([0, 1, 0, 1])),
        "group": jnp.zeros(4, int),
        "prior": model.Prior(),
    }
    wanted = inspect.signature(model.simulate).parameters
    drawn = model.simulate(**{name: known[name] for name in wanted})
    data = drawn[-1]
    known |= {"params": drawn.params, "labels": data, "observations": data}
    known |= {"share": jnp.ones(3), "counts": jnp.ones((2, 2, 2))}
    return known | drawn.params._asdict() | {"truth": drawn.truth}


def outcome(call: Any, case: Case) -> str:
    """'' if the argument is refused as it should be, else what happens instead."""
    arguments = required(call)
    arguments[case.name] = case.value
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = call(**arguments)
            if hasattr(made, "fit") and inspect.isclass(call):
                made.fit(*fitting_data(call))
    except (TypeError, ValueError) as error:
        message = str(error)
        says_what = any(
            words in message for words in ("expected", "there are", "the columns are", "not among")
        )
        if says_what and (case.is_data or case.name in message):
            return ""
        return f"{case}: {type(error).__name__}: {message}"
    except Exception as error:
        return f"{case}: {type(error).__name__}: {error}"
    return f"{case}: accepted"


def fitting_data(call: Any) -> tuple[Any, ...]:
    if "judgements" in inspect.signature(call.fit).parameters:
        judgements, target = judgements_and_target()
        return judgements, target > 0
    return (examples()["data"],)


def answer() -> None:
    """Serve the test: a line with a name in, a line with the faults out."""
    for line in sys.stdin:
        target = targets()[line.strip()]
        call = getattr(instance(target[0]), target[1]) if isinstance(target, tuple) else target
        faults = [found for case in cases(call) if (found := outcome(call, case))]
        print(json.dumps(faults), flush=True)


@pytest.fixture(scope="module")
def plain_process() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, __file__], cwd=ROOT, stdin=-1, stdout=-1, text=True
    ) as process:
        yield process
        process.stdin.close()


@pytest.mark.parametrize("name", names_of_targets())
def test_wrong_arguments_are_refused_by_name(name, plain_process):
    plain_process.stdin.write(f"{name}\n")
    plain_process.stdin.flush()
    assert json.loads(plain_process.stdout.readline()) == []


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    answer()
