"""The sections of a profile that refer to nodes of its tree, so that a merge makes them anew."""

from typing import Final

WINDOWS: Final = "windows"  # the windows of the run: a message `WindowTable` of the schema
EXEMPLARS: Final = "exemplars"  # steps with all their events: a message `ExemplarTable`
NODE_SECTIONS: Final = frozenset({WINDOWS, EXEMPLARS})
