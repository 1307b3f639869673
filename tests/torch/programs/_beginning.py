"""What each program begins with: double precision, and numbers of NumPy's for all that is drawn."""

import numpy as np
import torch

torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(0)


def draw(*shape, scale=1.0):
    return torch.from_numpy(scale * rng.normal(size=shape))


def init(model):
    for p in model.parameters():
        p.data.copy_(draw(*p.shape, scale=0.3))
    return model
