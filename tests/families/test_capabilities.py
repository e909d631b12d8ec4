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
    GammaPoisson,
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
FAMILIES = {
    f"{name}{k}": family
    for name, kind in registry().items()
    if kind.__module__.startswith("bayesgen.")
    for k, family in enumerate(kind.examples(3, 4))
}


def members(kind: type) -> list[str]:
    return [name for name in vars(kind) if not name.startswith("_")]


def arguments(function: Any) -> list[tuple[str, Any, Any]]:
    """Names, kinds and defaults, without that of the family: `self`, or `f` on another page."""
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in parameters if p.name not in ("self", "f")]


def test_capabilities_are_few_small_and_explained():
    assert len(KINDS) <= 10
    for kind in KINDS.values():
        assert 1 <= len(members(kind)) <= 5
        assert "sked" in kind.__doc__ or "``" in kind.__doc__, kind  # who asks
        for name in members(kind):
            assert inspect.getdoc(getattr(kind, name))


@pytest.mark.parametrize("name", KINDS)
def test_a_capability_has_an_owner(name):
    assert any(f.capability(KINDS[name]) is not None for f in FAMILIES.values())


@pytest.mark.parametrize("name", FAMILIES)
def test_what_a_family_offers_takes_what_the_capability_says(name):
    for kind in KINDS.values():
        found = FAMILIES[name].capability(kind)
        if found is None:
            continue
        assert isinstance(found, kind)
        for member in members(kind):
            said = getattr(kind, member)
            if not isinstance(said, property):
                assert arguments(getattr(type(found), member)) == arguments(said), member


def test_what_is_asked_in_vain_is_named():
    family = StudentT()
    assert family.capability(capabilities.LinearRule) is None
    with pytest.raises(MissingCapabilityError) as info:
        require(family, capabilities.LinearRule, "this question")
    assert "this question needs the capability LinearRule (linear_form)" in str(info.value)
    assert "which StudentT does not offer" in str(info.value)
    again = pickle.loads(pickle.dumps(info.value))
    assert str(again) == str(info.value)
    assert again.families == ("StudentT",)
    assert isinstance(info.value, NotImplementedError)


def product(*families: ConjugateFamily) -> Columns:
    return Columns(
        tuple("abc"[: len(families)]),
        families,
        tuple((2 * k, 2 * k + 1) for k in range(len(families))),
    )


def of(kind: type[ConjugateFamily]) -> Any:
    return kind.examples(2, 2)[0]


def test_a_product_is_linear_if_all_its_blocks_are():
    linear, other = of(BetaBernoulli), of(GammaPoisson)
    for kind in (capabilities.LinearRule, capabilities.ThetaDensity):
        assert product(linear, other).capability(kind) is not None
    found = product(linear, of(DirichletMarkov))
    with pytest.raises(MissingCapabilityError, match="which DirichletMarkov does not offer"):
        require(found, capabilities.FeatureInformation, "it")


def test_a_product_has_the_coordinates_of_its_blocks():
    mixed = product(of(BetaBernoulli), of(NormalInverseWishart), of(DirichletCategorical))
    rng = np.random.default_rng(0)
    theta = mixed.draw(rng, 5)
    free = mixed.pymc_coordinates(theta, None)
    own = mixed.families[1].pymc_coordinates({k: theta[f"b_{k}"] for k in ("mu", "Sigma")}, None)
    assert set(free) == {f"b_{name}" for name in own}
    score = mixed.for_plug_in("mle")
    assert score.families[:2] == mixed.families[:2]
    assert (score.families[2].new == 0).all()


def test_no_other_module_asks_for_the_class_of_a_family():
    """`Family` alone may be asked for, where a user's argument is checked."""
    root = Path(bayesgen.__file__).parent
    classes = {"ConjugateFamily", "Stats", *registry()}
    classes |= {f.statistics.__name__ for f in registry().values()}
    for path in root.rglob("*.py"):
        if root / "families" in path.parents:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
                "isinstance",
                "issubclass",
            ):
                names = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
                assert not names & classes, f"{path}:{node.lineno}"
