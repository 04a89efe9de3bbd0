"""The page saves itself as one file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deepcontext.ui.format import format_value

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.ui.browser.conftest import Opened


def test_the_page_is_saved_as_one_file_that_works_from_disk(
    open_on: Callable[..., Any], opened: Opened, tmp_path: Path
) -> None:
    with opened.page.expect_download() as download:
        opened.page.keyboard.press("e")
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    assert path.name == "short.dcprof.html"
    with open_on(path.as_uri(), opened.profile) as again:
        again.go()
        again.status(format_value(int(opened.profile.exclusive("host_time_ns").sum()), "ns"))
