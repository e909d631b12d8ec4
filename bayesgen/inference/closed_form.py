"""Statistics to prior and posterior, for one fit, a stream, or a merge alike."""

from bayesgen.families.errors import NoClosedFormError
from bayesgen.inference.chosen_priors import LabelledRows, maximise_evidence, maximise_label_score
from bayesgen.posterior.model import ClassModel, ClassStats

PRIORS = ("default", "empirical", "loo")


NEEDS_ROWS = "prior='loo' chooses the hyper-parameters by scores of the training rows themselves"


def posterior(
    unresolved: ClassModel, prior: str, stats: ClassStats, rows: LabelledRows | None = None
) -> tuple[ClassModel, ClassModel]:
    """(prior, posterior) given everything seen so far.

    A function of the statistics alone, but for ``prior="loo"``: however the rows arrived, in one
    fit or in parts, the data-scaled defaults and the posterior are the same.

    Parameters
    ----------
    unresolved : ClassModel
        Hyper-parameters as the user gave them, of a conjugate family.
    prior : {"default", "empirical", "loo"}
    stats : ClassStats
    rows : LabelledRows, optional
        Those behind `stats`, for ``prior="loo"``.
    """
    if prior not in PRIORS:
        raise ValueError(f"prior must be 'default', 'empirical' or 'loo', got {prior!r}")
    model = unresolved.resolve(stats)
    if prior == "empirical":
        best = maximise_evidence(model.family, stats.features)
        model = ClassModel(model.alpha, best)
    elif prior == "loo":
        if rows is None:
            raise NoClosedFormError(f"{NEEDS_ROWS}: fit all rows together")
        model = maximise_label_score(unresolved.family, model, stats, rows)
    return model, model.update(stats)
