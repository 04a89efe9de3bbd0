"""The section of a profile with the windows of the run: a message `WindowTable` of the schema."""

from typing import Final

SECTION: Final = "windows"
