"""Traces of torch.profiler (Kineto, Chrome trace format)."""
