"""The standard's extension ``fft``."""

__all__: list[str] = []
