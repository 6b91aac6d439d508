"""The README's example runs, and what it points to is there."""

import re
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_example_runs() -> None:
    names: dict[str, Any] = {}
    for example in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL):
        exec(example, names)
    est = names["est"]
    assert est.labels_.to_dict() == {"a": "cat", "b": "dog", "c": "cat", "d": "dog"}
    assert est.worker_quality_["accuracy"].idxmin() == "eve"
    assert isinstance(est.confusions_.loc["eve"], pd.DataFrame)


def test_links_lead_to_files() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert targets
    assert not [target for target in targets if not (ROOT / target).exists()]


def test_there_are_exactly_two_commands_of_set_up() -> None:
    commands = re.findall(r"<!-- (\w+) -->\n```bash\n([^\n]+)\n```", README)
    assert [name for name, _ in commands] == ["demo", "test"]
