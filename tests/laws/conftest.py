"""The laws run once for each example prior of each family."""

import pytest

from tests.laws.cases import Case, pytest_generate_tests  # noqa: F401 - pytest calls it

FIRST_ALONE = {
    # graphs that are rewritten again and again
    "test_clones_of_a_model_have_its_density",
    "test_clones_of_a_model_of_a_sampled_family_have_its_density",
    # models of other rows, declared anew for each number of them
    "test_a_model_of_rows_takes_other_rows",
    "test_a_model_of_rows_of_a_sampled_family_takes_other_rows",
    # draws of theta by quasi-random numbers: as those of test_draws.py, which every example has
    "test_the_route_by_draws",
    # rows drawn from densities that test_rows_are_simulated_from_the_density_... holds them to
    "test_one_row_reweights_the_prior_predictive_to_its_posterior",
}
IN_TURN = {
    "test_remove_undoes_merge_in_any_order": {"weight": (1.0, 0.01, 1e3)},
    "test_a_row_leaves_as_it_came": {"kind": ("ones", "fractions", "one row of none")},
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fast is one of two and three classes, and of `FIRST_ALONE` the first example of a family.

    Of `IN_TURN` later examples of a family take one value each.
    """
    for item in items:
        given = getattr(item, "callspec", None)
        case, n = (given.params.get(k) for k in ("case", "n_classes")) if given else (None, None)
        name = getattr(item, "originalname", "")  # a doctest has none
        if name in FIRST_ALONE and given and "-0" not in given.id:
            item.add_marker(pytest.mark.slow)
        if not isinstance(case, Case):
            continue
        other = n is not None and n != 3 - case.index % 2
        turn = any(
            case.index and values[case.index % len(values)] != given.params[name]
            for name, values in IN_TURN.get(item.originalname, {}).items()
        )
        if other or turn or (case.index and item.originalname in FIRST_ALONE):
            item.add_marker(pytest.mark.slow)
