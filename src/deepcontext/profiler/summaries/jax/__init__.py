"""JAX in a profile: compiled programs, operations of the programs, memory of the arrays.

Reads the section "jax" and frames; imports no JAX.
"""
