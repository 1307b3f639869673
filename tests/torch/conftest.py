"""The room, in whose tests alone Tensors have PyTorch's meanings."""

from tests.restoring import meanings_of

room, meanings = meanings_of("wengert.torch")
