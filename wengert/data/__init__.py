"""Data for training: datasets, the order of their samples, and batches on the selected backend."""

from wengert.data.collation import default_collate, default_convert
from wengert.data.datasets import (
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    random_split,
)
from wengert.data.loader import DataLoader, progress
from wengert.data.samplers import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = [
    "BatchSampler",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Subset",
    "TensorDataset",
    "default_collate",
    "default_convert",
    "progress",
    "random_split",
]
__dir__ = lambda: __all__
