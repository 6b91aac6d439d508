import pytest

from bayescrowd.experiments.stagewise.figure3 import EXPERIMENT


def errors(size=12, likelihood=-90.0, refined=1.3, components=3):
    def value(row, column, seed):
        made_up = {
            "log-likelihood": -90.5 if column == "true model" else likelihood,
            "max norm": 0.1 if column == "0" else 0.02,
            "size of S": size,
            "error, refined": refined,
            "components, printed rule": components,
        }
        return made_up.get(row, 1.0)

    return value


def test_settings():
    (part,) = EXPERIMENT.parts
    assert part.settings.startswith("StagewiseEM(")
    assert "n_iter=20" in part.settings
    assert "seed" not in part.settings


def test_claims(claims):
    found = claims(EXPERIMENT, errors())
    assert not found["|S| < 10"].holds
    assert "12 to 12, median 12" in found["|S| < 10"].evidence
    assert all(claim.holds for text, claim in found.items() if text != "|S| < 10")
    assert claims(EXPERIMENT, errors(size=9))["|S| < 10"].holds


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"size": 16}, "|S| is at most 15"),
        ({"likelihood": -91.0}, "the log-likelihood reaches that of the true model"),
        (
            {"refined": 1.6},
            "after refinement the mean error is at most 0.5 points above the true model's",
        ),
        ({"components": 2}, "the printed rule finds all components"),
    ],
)
def test_control_claims_can_fail(changed, text, claims):
    assert not claims(EXPERIMENT, errors(**changed))[text].holds


def test_picture(drawn):
    assert [axes.get_title(loc="left") for axes in drawn(EXPERIMENT).axes] == [
        *("log-likelihood", "max norm", "size of S")
    ]
