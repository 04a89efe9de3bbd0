"""The profile file: from bytes to the model and back. `profile.proto` defines the format.

The session writes with the same encoder (`wire.py`) but without this package, because numpy and
protobuf must not be imported into the program under test.
"""

from deepcontext.profiler.model.store.reader import read_profile
from deepcontext.profiler.model.store.writer import encode_profile

__all__ = ["encode_profile", "read_profile"]
