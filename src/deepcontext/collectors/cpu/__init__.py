"""The processor: sampling of threads, counters, native frames. No framework."""
