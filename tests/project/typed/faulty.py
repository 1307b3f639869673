"""A user's program with a fault in each line that says so."""

import wengert as wg
from wengert import nn, optim
from wengert.testing import check_gradients


class Net(nn.Module):
    def forward(self, x: wg.Tensor) -> wg.Tensor:
        return x


@wg.compile
def step(x: wg.Tensor, rate: float = 0.1) -> wg.Tensor:
    return x * rate


@check_gradients(...)
def test_square(x: wg.Tensor) -> wg.Tensor:
    return x**2


def loss(x: wg.Tensor) -> wg.Tensor:
    return wg.sum(x)


x = wg.ones(3)
wg.summ(x)  # fault: a misspelt function
wg.cat([x, x])  # fault: another library's function
x.summ()  # fault: a misspelt method
x.clamp(0, 1)  # fault: another library's method
wg.linalg.sovle(x, x)  # fault: a misspelt function of an extension
wg.fft.rff(x)  # fault
wg.special.digama(x)  # fault
nn.Liner(3, 4)  # fault: a misspelt layer
optim.Adm([x])  # fault: a misspelt optimiser
optim.lr_scheduler.StepLR(optim.SGD([x]), stepsize=2)  # fault: a misspelt option
wg.autograd.gard(x, x)  # fault
wg.sum(x, dim=0)  # fault: another library's argument name
x.mean(keepdim=True)  # fault
wg.sum(x, axis="rows")  # fault: a wrong type
x.reshape("3")  # fault
wg.compile(loss, cache="many")  # fault
nn.Linear("3", 4)  # fault
Net()(1.0)  # fault: forward takes a Tensor
Net()(x, x)  # fault
step(x, 0.1, 0.2)  # fault
step(x, speed=0.2)  # fault
wg.grad(loss)(x, x)  # fault
wg.grad(loss)("x")  # fault
text: str = wg.exp(x)  # fault: a Tensor is no str
number: str = x.numel()  # fault
test_square.function("x")  # fault: its parameters are the function's
test_square.functoin()  # fault
check_gradients(..., example=3)  # fault: a misspelt option
