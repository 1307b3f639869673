"""Parameters and values outside their range, and infinite logarithms."""

import math
from typing import Any

import pytest

import wengert as wg
from tests.walking import lines_of, walk

NAN, INF = math.nan, math.inf


#: Parameters out of range.
WRONG = lines_of("""
Normal(NAN, 1.0)  Normal(0.0, 0.0)  Normal(0.0, NAN)  Laplace(0.0, -1.0)  Uniform(1.0, 1.0)
Uniform(NAN, 1.0)  Exponential(0.0)  Gamma(1.0, -1.0)  Beta(0.0, 1.0)  Bernoulli(1.1)
Bernoulli(NAN)  Bernoulli(None, NAN)  Categorical(t([-1.0, 2.0]))  Categorical(t([0.0, 0.0]))
Categorical(None, t([NAN, 1.0]))  MultivariateNormal(t([NAN, 0.0]), t([[1.0, 0.0], [0.0, 1.0]]))
MultivariateNormal(t([0.0, 0.0]), t([[1.0, 0.5], [0.1, 1.0]]))
MultivariateNormal(t([0.0, 0.0]), None, None, t([[1.0, 0.0], [0.0, -1.0]]))
""")
#: Distributions, and a value inside and outside of each.
VALUES = {
    "Normal(0.0, 1.0)": (1.0, NAN), "Laplace(0.0, 1.0)": (1.0, NAN), "Gamma(1.0, 1.0)": (1.0, -1.0),
    "Exponential(1.0)": (0.0, -1.0), "Uniform(0.0, 1.0)": (1.0, 1.5), "Beta(1.0, 1.0)": (0.5, 1.5),
    "Bernoulli(0.5)": (1.0, 0.5), "Categorical(t([0.5, 0.5]))": (1, 2),
    "Categorical(t([0.5, 0.5]) )": (0, -1), "Categorical( t([0.5, 0.5]))": (0, 0.5),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of what is not checked
def test_parameters_and_values_out_of_range_are_errors(room: Any) -> None:
    space = {**vars(room.distributions), "t": room.tensor, "NAN": NAN}

    def check(family: str, line: str) -> None:
        with pytest.raises(ValueError, match=family):
            eval(line, space)
        eval(f"{line[:-1]}, validate_args=False)", space)

    def check_value(family: str, line: str, good: Any, bad: Any) -> None:
        made = eval(line, space)
        made.log_prob(room.tensor([good]))
        with pytest.raises(ValueError, match="value"):
            made.log_prob(room.tensor([good, bad]))
        if family != "Categorical":
            eval(f"{line[:-1]}, validate_args=False)", space).log_prob(room.tensor([bad]))

    walk([(line.partition("(")[0], line) for line in WRONG], check, whole=True)
    walk([(n.partition("(")[0], n, *ends) for n, ends in VALUES.items()], check_value, whole=True)


def test_values_of_joined_ones_are_checked(room: Any) -> None:
    D = room.distributions
    with pytest.raises(ValueError, match="value"):
        D.Independent(D.Normal(room.zeros(2), 1.0), 1).log_prob(room.tensor([NAN, 0.0]))
    with pytest.raises(ValueError, match="scale_tril is not in its range"):
        D.MultivariateNormal(room.zeros(2), scale_tril=-room.eye(2))
    with pytest.raises(ValueError, match="one of the three"):
        D.MultivariateNormal(room.zeros(2), room.eye(2), room.eye(2))


def test_probabilities_of_0(room: Any) -> None:
    D = room.distributions

    def divergence(family: str, p: Any, q: Any) -> float:
        make = getattr(D, family)
        return float(D.kl_divergence(make(room.tensor(p)), make(room.tensor(q))))

    logits = room.tensor([0.0, -INF, 1.0])
    assert D.Categorical(logits=logits).entropy().item() == pytest.approx(0.58220309)
    assert divergence("Categorical", [0.5, 0.5], [0.0, 1.0]) == INF
    assert divergence("Categorical", [0.0, 1.0], [0.5, 0.5]) == pytest.approx(math.log(2))
    assert divergence("Categorical", [0.0, 1.0], [0.0, 1.0]) == 0


def test_transforms_and_compiled_functions_have_densities(room: Any) -> None:
    normal = room.distributions.Normal
    given = room.ones(3)
    expected = normal(0.0, given).log_prob(given)
    found = wg.compile(lambda x: normal(x * 0, x).log_prob(x))(given)
    assert room.allclose(found, expected)
    slope = wg.grad(lambda x: normal(x * 0, 1.0).log_prob(x).sum())(given)
    assert slope.tolist() == [-1.0] * 3


def test_compiled_functions_see_what_objects_have(room: Any) -> None:
    normal = room.distributions.Normal(0.0, wg.ones(3))
    model = room.nn.DataParallel(wg.nn.LeakyReLU(0.1))
    run = wg.compile(lambda x: normal.log_prob(model(x)), check=0)
    given = wg.asarray([-1.0, -2.0, 3.0])
    for i in range(8):
        if i == 3:
            normal.scale = normal.scale + 1
        if i == 5:
            model.module.negative_slope = 0.5
        assert run(given).tolist() == normal.log_prob(model(given)).tolist()


def test_a_uniform_density_is_one_over_its_width(room: Any) -> None:
    found = room.distributions.Uniform(1.0, 4.0, validate_args=False).log_prob(
        room.tensor([0.5, 1.0, 2.0, 4.0])
    )
    assert found.tolist() == pytest.approx([-INF, -math.log(3), -math.log(3), -INF])
