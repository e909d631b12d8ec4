"""A table of the methods of each classifier, by question, for its page of the reference."""

import inspect

import pandas as pd

import bayesgen as bg

QUESTIONS = {
    "Learn": "fit partial_fit merge forget with_posterior",
    "Predict": "predict predict_proba predict_log_proba predict_joint_log_proba decision_function"
    " linear_form",
    "How sure": "predict_interval predict_posterior predict_uncertainty predict_set",
    "Why": "explain estimates edge_probabilities summary",
    "Unusual rows": "typicality score_samples",
    "Which model": "loo loo_log_joint log_evidence_",
    "Prior and posterior": "posterior_ draw_posterior sample_posterior posterior_groups to_pymc"
    " simulate",
    "Files": "save",
}


def public_methods(cls: type) -> set[str]:
    """Names of the methods that the package brings to a class."""
    found = {name: inspect.getattr_static(cls, name) for name in dir(cls) if name[0] != "_"}
    return {
        name
        for name, member in found.items()
        if callable(getattr(cls, name, None))
        and str(getattr(inspect.unwrap(getattr(cls, name)), "__module__", "")).startswith(
            "bayesgen"
        )
    }


def refused(clf: object) -> list[str]:
    """Public names that a classifier inherits and does not have."""
    return [name for name in dir(type(clf)) if name[0] != "_" and not hasattr(clf, name)]


def table(name: str) -> str:
    """Questions and what answers them, without methods that the classifier refuses."""
    clf = POOL if name == "LogLinearPool" else getattr(bg, name)()
    lines = [".. list-table::", "   :widths: 25 75", ""]
    for question, names in QUESTIONS.items():
        links = [link for answer in names.split() if (link := _link(clf, answer))]
        lines += [f"   * - {question}", f"     - {', '.join(links)}"]
    return "\n".join(lines)


def _link(clf: object, name: str) -> str | None:
    cls, base = type(clf), bg.GenerativeClassifier
    property_of = name.endswith("_")
    if not hasattr(cls if property_of and clf is not POOL else clf, name):
        return None
    own = cls.__name__ == "LogLinearPool" or getattr(cls, name) is not getattr(base, name, None)
    owner = cls if own else base
    return f":{'attr' if property_of else 'meth'}:`~bayesgen.{owner.__name__}.{name}`"


ROWS = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0]})
POOL = bg.LogLinearPool([bg.GaussianNB()]).fit(ROWS, [0, 0, 1, 1])
REFUSED = {"LogLinearPool": refused(POOL)}
TABLES = {name: table(name) for name in bg.__all__ if hasattr(getattr(bg, name), "predict_proba")}
