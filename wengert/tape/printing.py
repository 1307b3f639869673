"""How Tensors print: PyTorch's format, whatever the backend."""


def format_tensor(tensor):
    return f"tensor({tensor.array})"
