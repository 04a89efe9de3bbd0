"""PyTorch: operators, modules, memory, what `torch.compile` fuses. Imports no torch at import time."""
