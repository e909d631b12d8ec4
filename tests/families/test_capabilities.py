"""Optional abilities of families: offered whole, asked for by name, refused loudly."""

import ast
import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bayesgen
from bayesgen.families import (
    BetaBernoulli,
    Columns,
    ConjugateFamily,
    DirichletCategorical,
    DirichletMarkov,
    NormalInverseWishart,
    StudentT,
    capabilities,
    registry,
)
from bayesgen.families.capabilities import require
from bayesgen.families.errors import MissingCapabilityError

KINDS = {
    name: kind
    for name, kind in vars(capabilities).items()
    if getattr(kind, "_is_protocol", False) and kind.__module__ == capabilities.__name__
}
FAMILIES = [
    kind.examples(3, 4)[0]
    for kind in registry().values()
    if kind.__module__.startswith("bayesgen.")
]


def arguments(function: Any) -> list[tuple[str, Any, Any]]:
    """Names, kinds and defaults, without that of the family: `self`, or `f` on another page."""
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in parameters if p.name not in ("self", "f")]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_what_families_offer_takes_what_the_capability_says(kind):
    offered = [f for family in FAMILIES if (f := family.capability(kind)) is not None]
    assert offered
    assert len(KINDS) <= 10
    for one in offered:
        assert isinstance(one, kind)
        for member, said in vars(kind).items():
            if not member.startswith("_") and not isinstance(said, property):
                assert arguments(getattr(type(one), member)) == arguments(said), member


def test_what_is_asked_in_vain_is_named():
    family = StudentT()
    assert family.capability(capabilities.LinearRule) is None
    with pytest.raises(MissingCapabilityError) as info:
        require(family, capabilities.LinearRule, "this question")
    assert "this question needs the capability LinearRule (linear_form)" in str(info.value)
    assert "which StudentT does not offer" in str(info.value)
    again = pickle.loads(pickle.dumps(info.value))
    assert (str(again), again.families) == (str(info.value), ("StudentT",))
    assert isinstance(info.value, NotImplementedError)


def product(*kinds: type[ConjugateFamily]) -> Columns:
    columns = tuple((2 * k, 2 * k + 1) for k in range(len(kinds)))
    return Columns(tuple("abc"[: len(kinds)]), tuple(f.examples(2, 2)[0] for f in kinds), columns)


def test_a_product_offers_what_all_its_blocks_do():
    both = product(BetaBernoulli, DirichletMarkov)
    assert both.capability(capabilities.ThetaDensity) is not None
    with pytest.raises(MissingCapabilityError, match="which DirichletMarkov does not offer"):
        require(both, capabilities.FeatureInformation, "it")


def test_a_product_has_the_coordinates_of_its_blocks():
    mixed = product(BetaBernoulli, NormalInverseWishart, DirichletCategorical)
    theta = mixed.draw(np.random.default_rng(0), 5)
    free = mixed.pymc_coordinates(theta, None)
    of_block = mixed.families[1].pymc_coordinates(
        {k: theta[f"b_{k}"] for k in ("mu", "Sigma")}, None
    )
    assert set(free) == {f"b_{name}" for name in of_block}
    score = mixed.for_plug_in("mle")
    assert score.families[:2] == mixed.families[:2]
    assert (score.families[2].new == 0).all()


def test_no_other_module_asks_for_the_class_of_a_family():
    """`Family` alone may be asked for, where a user's argument is checked."""
    root = Path(bayesgen.__file__).parent
    classes = {"ConjugateFamily", "Stats", *registry()}
    classes |= {f.statistics.__name__ for f in registry().values()}
    for path in set(root.rglob("*.py")) - set((root / "families").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "isinstance",
                "issubclass",
            ):
                names = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
                assert not names & classes, f"{path}:{node.lineno}"
