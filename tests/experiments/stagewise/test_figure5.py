from bayescrowd.experiments.stagewise.figure5 import EXPERIMENT, METHODS


def errors(stage):
    def value(row, column, seed):
        return {
            "true model": 10,
            "Stage-EM": stage(float(column)),
            "MV-EM": 15,
            "Spec-EM": 16,
        }.get(row, 20)

    return value


def test_settings():
    assert all("StagewiseEM(" in part.settings for part in EXPERIMENT.parts)
    assert "seed" not in EXPERIMENT.parts[0].settings


def test_evidence_shows_where_the_paper_is_not_borne_out(claims):
    found = claims(EXPERIMENT, errors(lambda alpha: 12 if alpha <= 0.1 else 15.5))
    claim = found["stage-EM consistently outperforms the other methods"]
    assert not claim.holds
    assert "0.125: 15.5 against 15.0" in claim.evidence
    assert "0.1:" not in claim.evidence
    assert found["at alpha = 0.05, stage-EM outperforms the other methods"].holds
    assert not found["stage-EM stays close to the benchmark for all alpha"].holds


def test_claims_hold_for_a_better_method(claims):
    assert all(claim.holds for claim in claims(EXPERIMENT, errors(lambda alpha: 11)).values())


def test_picture(drawn):
    (axes,) = drawn(EXPERIMENT).axes
    assert len(axes.lines) == len(METHODS) - 1  # all but the votes
