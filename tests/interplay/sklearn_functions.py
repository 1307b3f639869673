"""scikit-learn's estimators on Tensors, through its array API dispatch; `test_scipy` runs this."""

import os

import numpy as np
import pytest

from tests.interplay.compare import compare

assert os.environ.get("SCIPY_ARRAY_API") == "1"  # which the dispatch asks for

sklearn = pytest.importorskip("sklearn")
decomposition = pytest.importorskip("sklearn.decomposition")
linear_model = pytest.importorskip("sklearn.linear_model")
pairwise = pytest.importorskip("sklearn.metrics.pairwise")
preprocessing = pytest.importorskip("sklearn.preprocessing")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 3))
Y = RNG.normal(size=9)

CASES = {
    "MaxAbsScaler": (lambda x: preprocessing.MaxAbsScaler().fit_transform(x), X),
    "MinMaxScaler": (lambda x: preprocessing.MinMaxScaler().fit_transform(x), X),
    "Normalizer": (lambda x: preprocessing.Normalizer().fit_transform(x), X),
    "PCA": (lambda x: abs(decomposition.PCA(2, svd_solver="full").fit_transform(x)), X),
    "PCA, the variances": (
        lambda x: decomposition.PCA(svd_solver="full").fit(x).explained_variance_,
        X,
    ),
    "Ridge": (lambda x, y: linear_model.Ridge(solver="svd").fit(x, y).coef_, X, Y),
    "Ridge, predictions": (
        lambda x, y: linear_model.Ridge(solver="svd").fit(x, y).predict(x),
        X,
        Y,
    ),
    "cosine_similarity": (lambda x: pairwise.cosine_similarity(x), X),
    "euclidean_distances": (lambda x: pairwise.euclidean_distances(x, x[:5, :] + 1.0), X),
    "polynomial_kernel": (lambda x: pairwise.polynomial_kernel(x), X),
    "rbf_kernel": (lambda x: pairwise.rbf_kernel(x, x[:5, :] + 1.0), X),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_estimator(name, backend):
    if backend.name == "array_api_strict" and name.startswith("Ridge"):
        pytest.skip("scikit-learn's own arrays beside array_api_strict's")
    function, *inputs = CASES[name]
    with sklearn.config_context(array_api_dispatch=True):
        compare(function, *inputs, rtol=1e-11)
