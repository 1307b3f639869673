"""SciPy's functions on Tensors, under ``SCIPY_ARRAY_API=1``; `test_scipy` runs this file.

SciPy reads the variable when it is imported, and the rest of the tests is for those who don't set
it: so these have a process of their own.
"""

import os
import warnings

import numpy as np
import pytest
from scipy import differentiate, fft, integrate, optimize, signal, special, stats  # noqa: F401
from scipy.cluster import vq  # noqa: F401 -- rows name them
from scipy.spatial.transform import RigidTransform, Rotation  # noqa: F401

import wengert as wg
from tests.interplay.compare import beside, call_of, compare, listed, namespace  # noqa: F401
from tests.walking import lines_of

assert os.environ.get("SCIPY_ARRAY_API") == "1"

RNG = np.random.default_rng(0)
V = RNG.uniform(0.2, 2.0, 7)
W = RNG.uniform(0.2, 2.0, 7)
X = np.cumsum(RNG.uniform(0.2, 2.0, 7))
M = RNG.uniform(0.2, 2.0, (4, 5))
P = V / V.sum()
LONG = RNG.normal(size=24)
Q = RNG.normal(size=(3, 4))
R = RNG.normal(size=(3, 3))
C, D = RNG.normal(size=(2, 6)), RNG.normal(size=(2, 8))


def of(result, *names):
    """Some of the fields of a result."""
    return [getattr(result, name) for name in names]


CASES = lines_of("""
special.digamma(V / 2)  special.entr(V / 2)  special.erf(V / 2)  special.erfc(V / 2)
special.erfcx(V / 2)  special.erfinv(V / 2.1)  special.expit(V / 2)  special.gamma(V / 2)
special.gammaln(V / 2)  special.i0(V / 2)  special.i0e(V / 2)  special.i1(V / 2)  special.i1e(V / 2)
special.log_ndtr(V / 2)  special.logit(V / 2.1)  special.ndtr(V / 2)  special.ndtri(V / 2.1)
special.psi(V / 2)  special.sinc(V / 2)  special.betaln(V, W)  special.kl_div(V, W)
special.rel_entr(V, W)  special.xlog1py(V, W)  special.xlogy(V, W)
special.log_softmax(M, axis=1)  special.logsumexp(M, axis=1)  special.logsumexp(M, axis=0, b=2.0)
special.softmax(M, axis=1)  stats.boxcox_llf(0.4, V)  stats.circmean(V)  stats.circstd(V)
stats.circvar(V)  of(stats.describe(V), "mean", "variance", "skewness")
stats.differential_entropy(V)
of(stats.directional_stats(M), "mean_direction", "mean_resultant_length")  stats.entropy(V)
stats.entropy(V, W, base=2)  stats.false_discovery_control(P)  stats.gmean(M, axis=1)
stats.gmean(V, weights=W)  stats.gstd(V)  stats.gzscore(V)  stats.hmean(M, axis=1, keepdims=True)
stats.iqr(V)  [stats.kstat(V, n) for n in range(1, 5)]  stats.kstatvar(V, 2)
stats.kurtosis(M, axis=1, bias=False)  of(stats.kurtosistest(LONG), "statistic", "pvalue")
stats.lmoment(V)  stats.median_abs_deviation(V)  stats.moment(M, 3, axis=0)
stats.moment(V, 3, center=1.5)  stats.pmean(V, 3.0)  stats.quantile(V, 0.3)  stats.sem(M, axis=1)
stats.sigmaclip(V).clipped  stats.skew(M, axis=1, bias=False)
of(stats.skewtest(LONG), "statistic", "pvalue")  stats.tmax(V, 1.5)  stats.tmean(V, (0.4, 1.8))
stats.tmin(V, 0.5)  stats.tsem(V)  stats.tstd(V)  stats.tvar(V)  stats.variation(M, axis=1, ddof=1)
stats.yeojohnson_llf(0.4, V)  stats.zmap(V, W)  stats.zscore(M, axis=1)  _cubature(V[:2])
integrate.cumulative_simpson(V, x=X)  integrate.cumulative_simpson(V, dx=0.1)
integrate.cumulative_trapezoid(V, X, initial=0)  integrate.romb(LONG[:9], dx=0.5)
integrate.trapezoid(V, X)  integrate.trapezoid(M, dx=0.3, axis=0)  optimize.rosen(V)
optimize.rosen_der(V)  optimize.rosen_hess(V)  optimize.rosen_hess_prod(V, W)
differentiate.derivative(lambda t: t ** 3, V).df  signal.envelope(LONG)
signal.fftconvolve(LONG, V, mode="same")  signal.freqs(V[:2], W[:3], worN=beside(V[:2], X))[1]
signal.freqz(V, worN=8)[1]  signal.gausspulse(V, fc=0.5)  signal.hilbert(LONG)  signal.hilbert2(M)
list(signal.lp2lp(V[:3], W[:3], 2.0))  list(signal.normalize(V[:3], W[:3]))  signal.resample(V, 9)
V * signal.get_window("hann", 7, xp=namespace(V))  vq.whiten(M)  fft.fft(V, 9)  fft.fftn(M)
fft.hfft(V)  fft.fht(V, 0.1, 0.5)  fft.irfft(fft.rfft(V) ** 2)
Rotation.align_vectors(R, R[::-1] + 0.1)[0].as_matrix()  Rotation.from_quat(Q).apply(R)
Rotation.from_quat(Q).apply(R, inverse=True)  Rotation.from_quat(Q).as_euler("xyz")
Rotation.from_quat(Q).as_mrp()  Rotation.from_rotvec(R).as_quat()  Rotation.from_quat(Q).as_rotvec()
Rotation.from_euler("xyz", R).as_matrix()  Rotation.from_mrp(R).as_matrix()
Rotation.from_rotvec(R).as_matrix()  Rotation.from_quat(Q).magnitude()
Rotation.from_quat(Q).mean().as_matrix()
(Rotation.from_quat(Q) * Rotation.from_quat(Q[::-1] + 0.2)).as_matrix()
(Rotation.from_quat(Q) ** 0.5).as_matrix()
RigidTransform.from_components(R, Rotation.from_quat(Q)).apply(R * 2)
RigidTransform.from_components(R, Rotation.from_quat(Q)).as_dual_quat()
RigidTransform.from_components(R, Rotation.from_quat(Q)).as_exp_coords()
RigidTransform.from_dual_quat(D).as_matrix()  RigidTransform.from_exp_coords(C).as_matrix()
RigidTransform.from_components(R, Rotation.from_quat(Q)).inv().as_matrix()
""")


def _cubature(c):
    low, high = beside(c, np.zeros(2)), beside(c, np.ones(2))
    return integrate.cubature(lambda x: x[:, 0] ** 2 * c[0] + x[:, 1] * c[1], low, high).estimate


def test_what_writes_to_views_says_so(backend):
    long, short = np.resize(V, 100), np.resize(V, 7)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = signal.oaconvolve(wg.asarray(long), wg.asarray(short))
    # From SciPy 1.18 on it does not write to a view, and is right.
    assert [x.category for x in told] == [wg.ViewWarning] or (
        not told and np.allclose(found.numpy(), np.convolve(long, short))
    )
    ends = (wg.asarray(v, dtype=wg.float64) for v in (0.0, 1.0))
    with pytest.warns(wg.ViewWarning):
        integrate.tanhsinh(lambda x: wg.log(x), *ends)


#: SciPy computes these on NumPy's arrays in compiled code, in double precision.
IN_DOUBLE_ON_NUMPY = ("Rotation", "RigidTransform", "signal.gausspulse")


@pytest.mark.filterwarnings("ignore:a view is changed in place")
@pytest.mark.parametrize("line", CASES)
def test_float32_stays_where_it_does_with_numpy(line, backend):
    if backend.name != "numpy" or any(name in line for name in IN_DOUBLE_ON_NUMPY):
        pytest.skip("one backend is enough, where NumPy's functions are SciPy's own")
    function, *inputs = call_of(line, globals())
    inputs = [x.astype(np.float32) for x in inputs]
    expected = listed(function(*inputs))
    found = listed(function(*map(wg.asarray, inputs)))
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype.name == np.asarray(theirs).dtype.name


@pytest.mark.parametrize("line", CASES)
def test_function(line, backend):
    compare(*call_of(line, globals()), rtol=1e-11)


def test_a_function_that_leaves_the_tape_is_an_error(backend):
    """Where SciPy falls back to NumPy, nothing is tracked; so that must not pass in silence."""
    x = wg.asarray(V, requires_grad=True)
    for function in (special.jv, lambda n, x: fft.dct(x)):
        with pytest.raises((RuntimeError, TypeError), match=r"tensor\.(detach\(\)\.)?numpy\(\)"):
            function(1, x)
