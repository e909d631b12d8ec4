"""Statistics to prior and posterior, for one fit, a stream, or a merge alike."""

from bayesgen.inference.empirical_bayes import maximise_evidence
from bayesgen.posterior.model import ClassModel, ClassStats

PRIORS = ("default", "empirical")


class NoClosedFormError(ValueError):
    """What is asked for has no closed form after this fit."""


def posterior(
    unresolved: ClassModel, prior: str, stats: ClassStats
) -> tuple[ClassModel, ClassModel]:
    """(prior, posterior) given everything seen so far.

    A function of the statistics alone: however the rows arrived, in one fit or in parts, the
    data-scaled defaults and the posterior are the same.

    Parameters
    ----------
    unresolved : ClassModel
        Hyper-parameters as the user gave them, of a conjugate family.
    prior : {"default", "empirical"}
    stats : ClassStats
    """
    if prior not in PRIORS:
        raise ValueError(f"prior must be 'default' or 'empirical', got {prior!r}")
    model = unresolved.resolve(stats)
    if prior == "empirical":
        best = maximise_evidence(model.family, stats.features)
        model = ClassModel(model.alpha, best)
    return model, model.update(stats)
