"""The questions, one in each file: each looks at a profile and returns causes."""
