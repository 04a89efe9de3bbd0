"""Python: call paths at operator and scope boundaries."""
