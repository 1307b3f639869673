"""SciPy's functions on Tensors, under ``SCIPY_ARRAY_API=1``; `test_scipy` runs this file.

SciPy reads the variable when it is imported, and the rest of the tests is for those who don't set
it: so these have a process of their own.
"""

import os
import warnings

import numpy as np
import pytest
from scipy import differentiate, fft, integrate, optimize, signal, special, stats
from scipy.cluster import vq
from scipy.spatial.transform import RigidTransform, Rotation

import wengert as wg
from tests.interplay.compare import beside, compare, listed, namespace

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
ROTATIONS = Rotation.from_quat(Q).as_matrix()


def of(result, *names):
    """Some of the fields of a result."""
    return [getattr(result, name) for name in names]


SPECIAL_OF_ONE = (
    "digamma entr erf erfc erfcx erfinv expit gamma gammaln i0 i0e i1 i1e log_ndtr logit ndtr "
    "ndtri psi sinc"
)
SPECIAL_OF_TWO = "betaln kl_div rel_entr xlog1py xlogy"

CASES = {
    "special.log_softmax": (lambda x: special.log_softmax(x, axis=1), M),
    "special.logsumexp": (lambda x: special.logsumexp(x, axis=1), M),
    "special.logsumexp weighted": (lambda x: special.logsumexp(x, axis=0, b=2.0), M),
    "special.softmax": (lambda x: special.softmax(x, axis=1), M),
    "stats.boxcox_llf": (lambda x: stats.boxcox_llf(0.4, x), V),
    "stats.circmean": (lambda x: stats.circmean(x), V),
    "stats.circstd": (lambda x: stats.circstd(x), V),
    "stats.circvar": (lambda x: stats.circvar(x), V),
    "stats.describe": (lambda x: of(stats.describe(x), "mean", "variance", "skewness"), V),
    "stats.differential_entropy": (lambda x: stats.differential_entropy(x), V),
    "stats.directional_stats": (
        lambda x: of(stats.directional_stats(x), "mean_direction", "mean_resultant_length"),
        M,
    ),
    "stats.entropy": (lambda x: stats.entropy(x), V),
    "stats.entropy relative": (lambda x, y: stats.entropy(x, y, base=2), V, W),
    "stats.false_discovery_control": (lambda x: stats.false_discovery_control(x), P),
    "stats.gmean": (lambda x: stats.gmean(x, axis=1), M),
    "stats.gmean weighted": (lambda x, w: stats.gmean(x, weights=w), V, W),
    "stats.gstd": (lambda x: stats.gstd(x), V),
    "stats.gzscore": (lambda x: stats.gzscore(x), V),
    "stats.hmean": (lambda x: stats.hmean(x, axis=1, keepdims=True), M),
    "stats.iqr": (lambda x: stats.iqr(x), V),
    "stats.kstat": (lambda x: [stats.kstat(x, n) for n in range(1, 5)], V),
    "stats.kstatvar": (lambda x: stats.kstatvar(x, 2), V),
    "stats.kurtosis": (lambda x: stats.kurtosis(x, axis=1, bias=False), M),
    "stats.kurtosistest": (lambda x: of(stats.kurtosistest(x), "statistic", "pvalue"), LONG),
    "stats.lmoment": (lambda x: stats.lmoment(x), V),
    "stats.median_abs_deviation": (lambda x: stats.median_abs_deviation(x), V),
    "stats.moment": (lambda x: stats.moment(x, 3, axis=0), M),
    "stats.moment about": (lambda x: stats.moment(x, 3, center=1.5), V),
    "stats.pmean": (lambda x: stats.pmean(x, 3.0), V),
    "stats.quantile": (lambda x: stats.quantile(x, 0.3), V),
    "stats.sem": (lambda x: stats.sem(x, axis=1), M),
    "stats.sigmaclip": (lambda x: stats.sigmaclip(x).clipped, V),
    "stats.skew": (lambda x: stats.skew(x, axis=1, bias=False), M),
    "stats.skewtest": (lambda x: of(stats.skewtest(x), "statistic", "pvalue"), LONG),
    "stats.tmax": (lambda x: stats.tmax(x, 1.5), V),
    "stats.tmean": (lambda x: stats.tmean(x, (0.4, 1.8)), V),
    "stats.tmin": (lambda x: stats.tmin(x, 0.5), V),
    "stats.tsem": (lambda x: stats.tsem(x), V),
    "stats.tstd": (lambda x: stats.tstd(x), V),
    "stats.tvar": (lambda x: stats.tvar(x), V),
    "stats.variation": (lambda x: stats.variation(x, axis=1, ddof=1), M),
    "stats.yeojohnson_llf": (lambda x: stats.yeojohnson_llf(0.4, x), V),
    "stats.zmap": (lambda x, y: stats.zmap(x, y), V, W),
    "stats.zscore": (lambda x: stats.zscore(x, axis=1), M),
    "integrate.cubature": (lambda c: _cubature(c), V[:2]),
    "integrate.cumulative_simpson": (lambda y, x: integrate.cumulative_simpson(y, x=x), V, X),
    "integrate.cumulative_simpson with steps": (
        lambda y: integrate.cumulative_simpson(y, dx=0.1),
        V,
    ),
    "integrate.cumulative_trapezoid": (
        lambda y, x: integrate.cumulative_trapezoid(y, x, initial=0),
        V,
        X,
    ),
    "integrate.romb": (lambda y: integrate.romb(y, dx=0.5), LONG[:9]),
    "integrate.trapezoid": (lambda y, x: integrate.trapezoid(y, x), V, X),
    "integrate.trapezoid along": (lambda y: integrate.trapezoid(y, dx=0.3, axis=0), M),
    "optimize.rosen": (lambda x: optimize.rosen(x), V),
    "optimize.rosen_der": (lambda x: optimize.rosen_der(x), V),
    "optimize.rosen_hess": (lambda x: optimize.rosen_hess(x), V),
    "optimize.rosen_hess_prod": (lambda x, p: optimize.rosen_hess_prod(x, p), V, W),
    "differentiate.derivative": (lambda x: differentiate.derivative(lambda t: t**3, x).df, V),
    "signal.envelope": (lambda x: signal.envelope(x), LONG),
    "signal.fftconvolve": (lambda x, y: signal.fftconvolve(x, y, mode="same"), LONG, V),
    "signal.freqs": (lambda b, a: signal.freqs(b, a, worN=beside(b, X))[1], V[:2], W[:3]),
    "signal.freqz": (lambda b: signal.freqz(b, worN=8)[1], V),
    "signal.gausspulse": (lambda t: signal.gausspulse(t, fc=0.5), V),
    "signal.hilbert": (lambda x: signal.hilbert(x), LONG),
    "signal.hilbert2": (lambda x: signal.hilbert2(x), M),
    "signal.lp2lp": (lambda b, a: list(signal.lp2lp(b, a, 2.0)), V[:3], W[:3]),
    "signal.normalize": (lambda b, a: list(signal.normalize(b, a)), V[:3], W[:3]),
    "signal.resample": (lambda x: signal.resample(x, 9), V),
    "signal.windows": (lambda x: x * signal.get_window("hann", 7, xp=namespace(x)), V),
    "cluster.whiten": (lambda x: vq.whiten(x), M),
    "fft.fft": (lambda x: fft.fft(x, 9), V),
    "fft.fftn": (lambda x: fft.fftn(x), M),
    "fft.hfft": (lambda x: fft.hfft(x), V),
    "fft.fht": (lambda x: fft.fht(x, 0.1, 0.5), V),
    "fft.irfft": (lambda x: fft.irfft(fft.rfft(x) ** 2), V),
    "Rotation.align_vectors": (
        lambda a, b: Rotation.align_vectors(a, b)[0].as_matrix(),
        R,
        R[::-1] + 0.1,
    ),
    "Rotation.apply": (lambda q, v: Rotation.from_quat(q).apply(v), Q, R),
    "Rotation.apply inverse": (lambda q, v: Rotation.from_quat(q).apply(v, inverse=True), Q, R),
    "Rotation.as_euler": (lambda q: Rotation.from_quat(q).as_euler("xyz"), Q),
    "Rotation.as_mrp": (lambda q: Rotation.from_quat(q).as_mrp(), Q),
    "Rotation.as_quat": (lambda v: Rotation.from_rotvec(v).as_quat(), R),
    "Rotation.as_rotvec": (lambda q: Rotation.from_quat(q).as_rotvec(), Q),
    "Rotation.from_euler": (lambda v: Rotation.from_euler("xyz", v).as_matrix(), R),
    "Rotation.from_mrp": (lambda v: Rotation.from_mrp(v).as_matrix(), R),
    "Rotation.from_rotvec": (lambda v: Rotation.from_rotvec(v).as_matrix(), R),
    "Rotation.magnitude": (lambda q: Rotation.from_quat(q).magnitude(), Q),
    "Rotation.mean": (lambda q: Rotation.from_quat(q).mean().as_matrix(), Q),
    "Rotation product": (
        lambda p, q: (Rotation.from_quat(p) * Rotation.from_quat(q)).as_matrix(),
        Q,
        Q[::-1] + 0.2,
    ),
    "Rotation power": (lambda q: (Rotation.from_quat(q) ** 0.5).as_matrix(), Q),
    "RigidTransform.apply": (
        lambda q, v: RigidTransform.from_components(v, Rotation.from_quat(q)).apply(v * 2),
        Q,
        R,
    ),
    "RigidTransform.as_dual_quat": (
        lambda q, v: RigidTransform.from_components(v, Rotation.from_quat(q)).as_dual_quat(),
        Q,
        R,
    ),
    "RigidTransform.as_exp_coords": (
        lambda q, v: RigidTransform.from_components(v, Rotation.from_quat(q)).as_exp_coords(),
        Q,
        R,
    ),
    "RigidTransform.from_dual_quat": (
        lambda d: RigidTransform.from_dual_quat(d).as_matrix(),
        RNG.normal(size=(2, 8)),
    ),
    "RigidTransform.from_exp_coords": (
        lambda c: RigidTransform.from_exp_coords(c).as_matrix(),
        RNG.normal(size=(2, 6)),
    ),
    "RigidTransform.inv": (
        lambda q, v: RigidTransform.from_components(v, Rotation.from_quat(q)).inv().as_matrix(),
        Q,
        R,
    ),
}


def _cubature(c):
    low, high = beside(c, np.zeros(2)), beside(c, np.ones(2))
    return integrate.cubature(lambda x: x[:, 0] ** 2 * c[0] + x[:, 1] * c[1], low, high).estimate


def _sizes():
    """More cases of functions that have several ways to compute, by lengths, axes and options."""
    rng = np.random.default_rng(1)
    for n, m in ((100, 7), (7, 100), (8, 8), (1, 5)):
        for mode in ("full", "same", "valid"):
            yield (
                f"signal.fftconvolve {mode} {n} {m}",
                lambda x, y, mode=mode: signal.fftconvolve(x, y, mode=mode),
                *(rng.uniform(0.3, 2, n), rng.uniform(0.3, 2, m)),
            )
    for n in (2, 5, 8, 24):
        x, m = rng.uniform(0.3, 2, n), rng.uniform(0.3, 2, (n, 3))
        for size in (None, 7, 12):
            yield f"signal.hilbert {n} {size}", lambda x, k=size: signal.hilbert(x, N=k), x
            yield f"fft.rfft {n} {size}", lambda x, k=size: fft.rfft(x, k, norm="ortho"), x
        for size in (3, 4, 16, n):
            yield (
                f"signal.resample {n} {size}",
                lambda x, k=size: signal.resample(x, k, axis=0, window="hann"),
                m,
            )
            yield (
                f"signal.resample complex {n} {size}",
                lambda x, k=size: signal.resample(x, k),
                (x * (1 + 2j)),
            )
        yield f"signal.freqz {n}", lambda b, a: signal.freqz(b, a, worN=7)[1], x, V[:3]
        yield f"signal.freqz whole {n}", lambda b: signal.freqz(b, worN=16, whole=True)[1], x
        yield f"fft.ifht {n}", lambda x: fft.ifht(x, 0.1, 0.5, offset=0.2, bias=-0.1), x
        yield f"integrate.trapezoid {n}", lambda y: integrate.trapezoid(y, axis=0), m
    for axis in (0, 1, None, -1):
        x = rng.uniform(0.3, 2, (6, 7))
        for name in (
            *("gmean", "hmean", "kurtosis", "skew", "sem", "variation", "zscore", "iqr", "tmean"),
            *("tvar", "tstd", "tsem", "gstd", "gzscore", "entropy", "circmean", "circvar"),
            *("circstd", "kstat", "kstatvar", "median_abs_deviation", "lmoment"),
        ):
            yield (
                f"stats.{name} axis={axis}",
                lambda x, name=name, axis=axis: getattr(stats, name)(x, axis=axis),
                x,
            )
    for method in ("hazen", "linear", "weibull", "inverted_cdf", "harrell-davis"):
        yield (
            f"stats.quantile {method}",
            lambda x, method=method: stats.quantile(x, 0.37, method=method),
            rng.uniform(0.3, 2, 9),
        )


SIZES = {name: (function, *inputs) for name, function, *inputs in _sizes()}


@pytest.mark.parametrize("name", SIZES)
def test_other_ways_to_compute(name, backend):
    function, *inputs = SIZES[name]
    compare(function, *inputs, rtol=1e-10)


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


@pytest.mark.parametrize("name", SPECIAL_OF_ONE.split())
def test_special_of_one(name, backend):
    compare(getattr(special, name), V / 2.1)


@pytest.mark.parametrize("name", SPECIAL_OF_TWO.split())
def test_special_of_two(name, backend):
    compare(getattr(special, name), V, W)


#: SciPy computes these on NumPy's arrays in compiled code, in double precision.
IN_DOUBLE_ON_NUMPY = ("Rotation", "RigidTransform", "signal.gausspulse")


@pytest.mark.filterwarnings("ignore:a view is changed in place")
@pytest.mark.parametrize("name", sorted(CASES))
def test_float32_stays_where_it_does_with_numpy(name, backend):
    if backend.name != "numpy" or name.startswith(IN_DOUBLE_ON_NUMPY):
        pytest.skip("one backend is enough, where NumPy's functions are SciPy's own")
    function, *inputs = CASES[name]
    inputs = [x.astype(np.float32) for x in inputs]
    expected = listed(function(*inputs))
    found = listed(function(*map(wg.asarray, inputs)))
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype.name == np.asarray(theirs).dtype.name


@pytest.mark.parametrize("name", sorted(CASES))
def test_function(name, backend):
    if (name, backend.name) == ("integrate.tanhsinh", "array_api_strict"):
        pytest.skip("SciPy mixes integers and floats, which array_api_strict refuses")
    function, *inputs = CASES[name]
    compare(function, *inputs, rtol=1e-11)


def test_a_function_that_leaves_the_tape_is_an_error(backend):
    """Where SciPy falls back to NumPy, nothing is tracked; so that must not pass in silence."""
    x = wg.asarray(V, requires_grad=True)
    for function in (special.jv, lambda n, x: fft.dct(x)):
        with pytest.raises((RuntimeError, TypeError), match=r"tensor\.(detach\(\)\.)?numpy\(\)"):
            function(1, x)
