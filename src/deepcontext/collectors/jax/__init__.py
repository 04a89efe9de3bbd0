"""JAX: jitted calls, compiled programs, arrays, transfers. Imports no jax at import time."""
