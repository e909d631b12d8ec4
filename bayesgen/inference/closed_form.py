"""Statistics to prior and posterior, for one fit, a stream, or a merge alike."""

from bayesgen.families.contract import ConjugateFamily
from bayesgen.inference.empirical_bayes import maximise_evidence
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassModel, ClassStats

PRIORS = ("default", "empirical")


def posterior(
    family: ConjugateFamily, class_alpha: float | Array, prior: str, stats: ClassStats
) -> tuple[ClassModel, ClassModel]:
    """(prior, posterior) given everything seen so far.

    A function of the statistics alone: however the rows arrived, in one fit or in parts, the
    data-scaled defaults and the posterior are the same.
    """
    if prior not in PRIORS:
        raise ValueError(f"prior must be 'default' or 'empirical', got {prior!r}")
    model = ClassModel(class_alpha, family).resolve(stats)
    if prior == "empirical":
        best = maximise_evidence(model.family, stats.features)
        model = ClassModel(model.alpha, best)
    return model, model.update(stats)
