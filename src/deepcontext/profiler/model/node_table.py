"""Reading a section of a profile whose rows refer to nodes of its tree; merges drop such sections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from google.protobuf.message import DecodeError

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.model.store.messages import message_class

if TYPE_CHECKING:
    from typing import Self

    from deepcontext.profiler.model.profile_model import ProfileModel


class NodeTable:
    """What a section holds, decoded as it is used.

    Attributes:
        section: name of the section.
        message: its message in the schema.
    """

    section: ClassVar[str]
    message: ClassVar[str]

    def __init__(self, profile: ProfileModel, content: Any) -> None:
        self._profile = profile
        self._message = content
        self._size = len(profile.tree)
        if content.node_count != self._size:
            raise self._damage(
                f"rows refer to {content.node_count} nodes, the tree has {self._size}"
            )

    @classmethod
    def of(cls, profile: ProfileModel) -> Self | None:
        """Return what a profile holds; None where it has no such section: older or merged profiles.

        Raises:
            ProfileDataError: the section is damaged.
        """
        payload = profile.sections.get(cls.section)
        if payload is None:
            return None
        try:
            content = message_class(cls.message).FromString(payload)
        except DecodeError as error:
            raise _damage(profile, cls.section, f"no {cls.message} message ({error})") from error
        return cls(profile, content)

    def _damage(self, what: str) -> ProfileDataError:
        return _damage(self._profile, self.section, what)


def _damage(profile: ProfileModel, section: str, what: str) -> ProfileDataError:
    return ProfileDataError(
        f"cannot read '{profile.source or '<memory>'}': section '{section}': {what}; the file was written "
        "with this error: record the profile again"
    )
