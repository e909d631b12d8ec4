"""Rows that several files fit."""

import pytest
from sklearn.datasets import load_iris

import bayesgen as bg


@pytest.fixture(scope="package")
def penguins():
    return bg.datasets.load_penguins()


@pytest.fixture(scope="package")
def iris():
    return load_iris(return_X_y=True)
