"""scikit-learn's estimators on Tensors, through its array API dispatch; `test_scipy` runs this."""

import os

import numpy as np
import pytest

from tests.interplay.compare import call_of, compare
from tests.walking import lines_of

assert os.environ.get("SCIPY_ARRAY_API") == "1"  # which the dispatch asks for

sklearn = pytest.importorskip("sklearn")
decomposition = pytest.importorskip("sklearn.decomposition")
linear_model = pytest.importorskip("sklearn.linear_model")
pairwise = pytest.importorskip("sklearn.metrics.pairwise")
preprocessing = pytest.importorskip("sklearn.preprocessing")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 3))
Y = RNG.normal(size=9)

CASES = lines_of("""
preprocessing.MaxAbsScaler().fit_transform(X)  preprocessing.MinMaxScaler().fit_transform(X)
preprocessing.Normalizer().fit_transform(X)
abs(decomposition.PCA(2, svd_solver="full").fit_transform(X))
decomposition.PCA(svd_solver="full").fit(X).explained_variance_
linear_model.Ridge(solver="svd").fit(X, Y).coef_
linear_model.Ridge(solver="svd").fit(X, Y).predict(X)  pairwise.cosine_similarity(X)
pairwise.euclidean_distances(X, X[:5, :] + 1.0)  pairwise.polynomial_kernel(X)
pairwise.rbf_kernel(X, X[:5, :] + 1.0)
""")


@pytest.mark.parametrize("line", CASES)
def test_estimator(line, backend):
    if backend.name == "array_api_strict" and "Ridge" in line:
        pytest.skip("scikit-learn's own arrays beside array_api_strict's")
    function, *inputs = call_of(line, globals())
    with sklearn.config_context(array_api_dispatch=True):
        compare(function, *inputs, rtol=1e-11)
