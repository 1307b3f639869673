"""Training steps as people write them: of models that change."""

import copy
from types import SimpleNamespace
from typing import Any

import wengert as wg
from tests.compiler.training_steps import Bench, F, Made, step
from wengert import nn, optim


class Models(Bench):
    """Steps of models that change."""

    def layer_frozen_midway(self) -> Made:
        return self.train, lambda i: self.model[0].requires_grad_(i != 2)

    def weight_flipped(self) -> Made:
        def change(i: int) -> None:
            self.model[0].weight.requires_grad = bool(i % 2)

        return self.train, change

    def module_swapped(self) -> Made:
        def change(i: int) -> None:
            if i == 2:
                self.model[1] = nn.ReLU()

        return self.train, change

    def layer_appended(self) -> Made:
        def change(i: int) -> None:
            if i == 2:
                self.model.append(nn.LayerNorm(3))
                self.optimizer.add_param_group({"params": self.model[3].parameters()})

        return self.train, change

    def weights_tied(self) -> Made:
        self.model = nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 5), nn.Linear(5, 3))
        self.model[2].weight = self.model[0].weight
        self.optimizer = optim.Adam(self.model.parameters(), lr=0.01)

        def change(i: int) -> None:
            if i == 2:
                self.model[2].weight = nn.Parameter(self.model[0].weight.detach().clone())

        return self.train, change

    def weights_loaded_midway(self) -> Made:
        kept = copy.deepcopy(self.model.state_dict())
        return self.train, lambda i: self.model.load_state_dict(kept) if i == 3 else None

    def weights_pruned(self) -> Made:
        mask = (wg.randn(4, 5) > 0).astype(wg.float32)

        def train(x: Any, y: Any) -> Any:
            loss = self.train(x, y)
            with wg.no_grad():
                self.model[0].weight *= mask
            return loss

        return train, None

    def spectral_norm(self) -> Made:
        nn.utils.parametrizations.spectral_norm(self.model[0])
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)
        return self.train, None

    def weight_norm(self) -> Made:
        nn.utils.parametrizations.weight_norm(self.model[0])
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)
        return self.train, None

    def hook_on_a_module(self) -> Made:
        self.model[1].register_forward_hook(lambda module, args, out: out * 0.5)
        return self.train, None

    def hook_added_midway(self) -> Made:
        def change(i: int) -> None:
            if i == 2:
                self.model[1].register_forward_hook(lambda module, args, out: out * 0.5)

        return self.train, change

    def hook_on_a_gradient(self) -> Made:
        self.model[0].weight.register_hook(lambda g: g * 0.5)
        return self.train, None

    @step
    def hook_on_an_activation(self, x: Any, y: Any) -> Any:
        hidden = self.model[1](self.model[0](x))
        hidden.register_hook(lambda g: g.clip(-0.01, 0.01))
        return self.update(F.cross_entropy(self.model[2](hidden), y))

    def dropout(self) -> Made:
        self.model[1] = nn.Dropout(0.5)
        return self.train, None

    def dropout_rate_changed(self) -> Made:
        self.model[1] = nn.Dropout(0.5)
        return self.train, lambda i: setattr(self.model[1], "p", 0.1 * i)

    def evaluation_between(self) -> Made:
        self.model[1] = nn.Dropout(0.5)

        def change(i: int) -> None:
            self.model.eval()
            with wg.no_grad():
                self.model(wg.ones((2, 5)))
            self.model.train()

        return self.train, change

    def evaluation_inside(self) -> Made:
        self.model[1] = nn.Dropout(0.5)

        def train(x: Any, y: Any) -> Any:
            loss = self.train(x, y)
            self.model.eval()
            with wg.no_grad():
                right = (self.model(x).argmax(axis=1) == y).sum()
            self.model.train()
            return loss, right

        return train, None

    def switched_to_evaluation(self) -> Made:
        self.model[1] = nn.BatchNorm1d(4)
        return self.train, lambda i: self.model.train(i < 2)

    def batch_norm(self) -> Made:
        self.model = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3))
        self.optimizer = optim.Adam(self.model.parameters(), lr=0.01)
        return self.train, None

    def buffer_of_ones_own(self) -> Made:
        bench = self

        class Centred(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("mean", wg.zeros(4))

            def forward(self, x: Any) -> Any:
                with wg.no_grad():
                    self.mean.mul_(0.9).add_(0.1 * x.mean(axis=0))
                return x - self.mean

        bench.model[1] = Centred()
        return bench.train, None

    def counter_as_a_buffer(self) -> Made:
        steps = wg.zeros(())
        self.more = [steps]

        def train(x: Any, y: Any) -> Any:
            steps.add_(1.0)
            return self.update(F.cross_entropy(self.model(x), y) / steps)

        return train, None

    def hidden_state_carried(self) -> Made:
        cell = nn.GRUCell(5, 4)
        self.model[0], holder = cell, SimpleNamespace(h=wg.zeros((4, 4)))

        def train(x: Any, y: Any) -> Any:
            h = cell(x, holder.h)
            holder.h = h.detach()
            return self.update(F.cross_entropy(self.model[2](self.model[1](h)), y))

        return train, None

    def hidden_tuple_carried(self) -> Made:
        self.model[0] = cell = nn.LSTMCell(5, 4)
        holder = SimpleNamespace(state=(wg.zeros((4, 4)), wg.zeros((4, 4))))

        def train(x: Any, y: Any) -> Any:
            h, c = cell(x, holder.state)
            holder.state = h.detach(), c.detach()
            return self.update(F.cross_entropy(self.model[2](self.model[1](h)), y))

        def change(i: int) -> None:
            if i == 2:
                holder.state = wg.zeros((4, 4)), wg.zeros((4, 4))

        return train, change

    def subclass_with_a_property(self) -> Made:
        bench = self

        class Scaled(nn.Linear):
            factor = 1.0

            @property
            def scaled(self) -> Any:
                return self.weight * self.factor

            def forward(self, x: Any) -> Any:
                return F.linear(x, self.scaled, self.bias)

        bench.model[0] = Scaled(5, 4)
        return bench.train, lambda i: setattr(Scaled, "factor", 1.0 + i)

    def residual_blocks_in_a_list(self) -> Made:
        blocks = nn.ModuleList([nn.Linear(5, 5) for _ in range(3)])
        self.model = nn.ModuleDict({"blocks": blocks, "head": nn.Linear(5, 3)})
        self.optimizer = optim.Adam(self.model.parameters(), lr=0.01)

        def train(x: Any, y: Any) -> Any:
            for block in self.model["blocks"]:
                x = x + F.relu(block(x))
            return self.update(F.cross_entropy(self.model["head"](x), y))

        return train, lambda i: blocks.append(nn.Linear(5, 5)) if i == 2 else None

    def attention(self) -> Made:
        layer = nn.MultiheadAttention(5, 1, batch_first=True)
        self.model[0] = nn.Linear(5, 4)
        self.more = list(layer.parameters())

        def train(x: Any, y: Any) -> Any:
            found, _ = layer(x[None], x[None], x[None], need_weights=False)
            return self.update(F.cross_entropy(self.model(found[0]), y))

        return train, None

    def embedding(self) -> Made:
        self.model = nn.Sequential(nn.Embedding(3, 4), nn.Linear(4, 3))
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)
        return lambda x, y: self.update(F.cross_entropy(self.model(y), y)), None

    def generator_and_critic(self) -> Made:
        critic = nn.Linear(3, 1)
        other = optim.Adam(critic.parameters(), lr=0.01)
        self.more = list(critic.parameters())

        def train(x: Any, y: Any) -> Any:
            made = self.model(x)
            other.zero_grad()
            first = (
                F.softplus(critic(made.detach())).mean()
                + F.softplus(-critic(wg.randn(4, 3))).mean()
            )
            first.backward()
            other.step()
            second = self.update(F.softplus(-critic(made)).mean())
            return first, second

        return train, None

    @step
    def variational(self, x: Any, y: Any) -> Any:
        mean = self.model(x)
        z = mean + 0.1 * wg.randn(*mean.shape)
        return self.update(F.cross_entropy(z, y) + 0.01 * (mean**2).mean())

    def distillation(self) -> Made:
        teacher = nn.Linear(5, 3).requires_grad_(False)

        def train(x: Any, y: Any) -> Any:
            wanted = F.softmax(teacher(x) / 2.0, -1)
            return self.update(F.kl_div(F.log_softmax(self.model(x) / 2.0, -1), wanted))

        return train, None

    @step
    def inner_gradient_step(self, x: Any, y: Any) -> Any:
        w = self.model[2].weight
        inner = F.cross_entropy(F.linear(self.model[1](self.model[0](x)), w), y)
        (g,) = wg.autograd.grad(inner, w, create_graph=True)
        out = F.linear(self.model[1](self.model[0](x)), w - 0.1 * g)
        return self.update(F.cross_entropy(out, y))

    def checkpointed_block(self) -> Made:
        return lambda x, y: self.update(F.cross_entropy(wg.checkpoint(self.model, x), y)), None

    @step
    def hessian_inside(self, x: Any, y: Any) -> Any:
        curvature = wg.func.hessian(lambda z: F.cross_entropy(self.model(z), y[:1]))(x[:1])
        return self.update(F.cross_entropy(self.model(x), y)), curvature
