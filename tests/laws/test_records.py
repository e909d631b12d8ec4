"""Families and statistics survive files and pickles, and are never changed in place."""

import json
import pickle
from dataclasses import FrozenInstanceError, fields, replace

import joblib
import numpy as np
import pytest

from bayesgen.families.names import CLASS, FEATURE
from tests.laws.cases import close, identical


def test_records_survive_files_and_pickles(case):
    posterior, _, _, stats = case.fitted()
    for record in (case.prior, posterior, stats):
        arrays = {name: value for name, (_, value) in record.arrays().items()}
        through_json = json.loads(json.dumps(record.settings()))
        read = case.prior.read_stats if record is stats else type(record).from_parts
        again = read(arrays, through_json)
        pickled = pickle.loads(pickle.dumps(record))
        for name, (dims, value) in record.arrays().items():
            assert value.dtype.kind in "fiub", f"{name} cannot be stored"
            assert value.ndim == len(dims), f"{name}: {value.shape} for {dims}"
            if case.family.__name__ != "Columns":
                sizes = {CLASS: case.n_classes, FEATURE: case.n_features}
                for size, dim in zip(value.shape, dims, strict=True):
                    assert dim not in sizes or size in (1, sizes[dim]), f"{name}: {dim} {size}"
        identical(again, record)
        identical(pickled, record)


def test_families_and_statistics_are_frozen(case):
    posterior, _, _, stats = case.fitted(6)
    for record in (posterior, stats):
        for f in fields(record):
            with pytest.raises(FrozenInstanceError):
                setattr(record, f.name, None)


def test_nothing_is_changed_in_place(case):
    X, y = case.rows(12)
    a, b = case.stats(X[:6], y[:6]), case.stats(X[6:], y[6:])
    whole = a.merge(b)
    prior = replace(case.prior)  # no other test has looked at it
    records = (prior, a, b, whole)
    before, parameter = pickle.dumps(records), joblib.hash(prior)
    whole.remove(b)
    posterior = prior.update(a).update(b)
    posterior.log_predictive(X)
    prior.log_evidence(whole)
    prior.resolve(whole)
    posterior.draw(case.rng(), 2)
    a.reindex_classes(np.array([1, 2, 0]), 3)
    assert joblib.hash(prior) == parameter  # scikit-learn's measure of a parameter that changed
    for record, original in zip(records, pickle.loads(before), strict=True):
        identical(record, original)


def test_a_scaled_prior_has_its_hyperparameter_multiplied(case):
    for name in case.prior.tunable:
        if name != "nu":  # whose excess over D is what an inverse Wishart distribution multiplies
            scaled = case.prior.scaled({name: 3.0})
            close(getattr(scaled, name), 3 * np.asarray(getattr(case.prior, name)))
