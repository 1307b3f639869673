"""Networks of PyTorch load from safetensors with the same outputs, and trained ones go back."""

from typing import Any

import numpy as np
import pytest

import wengert as wg

pytestmark = pytest.mark.oracle


def mlp(nn: Any) -> Any:
    layers = nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(0.1), nn.Linear(16, 4)
    return nn.Sequential(*layers)


def resnet(nn: Any) -> Any:
    class Block(nn.Module):
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(outputs)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(outputs)
            self.relu = nn.ReLU()
            self.downsample = nn.Identity()
            if stride != 1 or inputs != outputs:
                projection = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
                self.downsample = nn.Sequential(projection, nn.BatchNorm2d(outputs))

        def forward(self, x: Any) -> Any:
            out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            return self.relu(out + self.downsample(x))

    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        Block(4, 4, 1),
        Block(4, 8, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    )


def transformer(nn: Any) -> Any:
    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(11, 8, padding_idx=0)
            layer = nn.TransformerEncoderLayer(
                8, 2, dim_feedforward=16, activation="gelu", batch_first=True
            )
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(8, 4)

        def forward(self, x: Any) -> Any:
            return self.head(self.encoder(self.embedding(x))[:, 0])

    return Encoder()


def rows(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=shape).astype("float32")


NETS = {
    "mlp": (mlp, rows(5, 6)),
    "resnet": (resnet, rows(5, 2, 12, 12)),
    "transformer": (transformer, np.random.default_rng(1).integers(0, 11, size=(5, 7))),
}


def same_outputs(ours: Any, theirs: Any, x: np.ndarray) -> None:
    torch = pytest.importorskip("torch")
    with torch.no_grad():
        expected = theirs.eval()(torch.asarray(x)).numpy()
    found = ours.eval()(wg.asarray(x)).detach().numpy()
    assert found.dtype == expected.dtype == np.float32
    assert np.std(expected) > 1e-2
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def train(nn: Any, optimizer: Any, model: Any, x: Any, targets: Any) -> None:
    model.train()
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), targets).backward()
        optimizer.step()


@pytest.mark.parametrize("name", NETS)
def test_networks_load_from_pytorch_and_go_back(name, tmp_path):
    torch = pytest.importorskip("torch")
    storage = pytest.importorskip("safetensors.torch")
    build, x = NETS[name]
    targets = np.arange(5) % 4
    torch.manual_seed(0)
    theirs, ours = build(torch.nn), build(wg.nn)
    # Running statistics and biases that differ from their initial values.
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
    train(torch.nn, optimizer, theirs, torch.asarray(x), torch.asarray(targets))
    path = tmp_path / "theirs.safetensors"
    storage.save_file(theirs.state_dict(), path)
    ours.load_state_dict(wg.nn.load(path))
    same_outputs(ours, theirs, x)

    optimizer = wg.optim.AdamW(ours.parameters(), lr=0.01)
    train(wg.nn, optimizer, ours, wg.asarray(x), wg.asarray(targets))
    path = tmp_path / "ours.safetensors"
    wg.nn.save(ours.state_dict(), path)
    back = build(torch.nn)
    assert back.load_state_dict(storage.load_file(path), strict=True)
    same_outputs(ours, back, x)
