"""What a profile says about JAX: its compiled programs, their operations, the memory of its arrays.

Reads the section "jax" and frames; imports no JAX.
"""
