"""The page's engine, run in Node."""

from __future__ import annotations

import atexit
import functools
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deepcontext.ui.web.one_file import page_data

if TYPE_CHECKING:
    from deepcontext.ui.web.open_profiles import OpenProfiles

    Question = tuple[str, dict[str, str]]

WEB: Final = Path(__file__).parents[2] / "web"


def answers(profiles: OpenProfiles, questions: list[Question]) -> list[Any]:
    """Return the engine's answers to questions about profiles."""
    folder = _built()
    data, asked = folder / "data", folder / "questions.json"
    data.write_text("\n".join(page_data(profiles)), encoding="ascii")
    asked.write_text(json.dumps(questions), encoding="utf-8")
    command = ["node", str(folder / "run_engine.mjs"), str(data), str(asked)]
    ran = subprocess.run(command, capture_output=True, check=True)
    found: list[Any] = json.loads(ran.stdout)["answers"]
    return found


@functools.cache
def _built() -> Path:
    if not (WEB / "node_modules").exists():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=WEB, check=True)
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    subprocess.run(["node", "tests/build_engine.mjs", str(folder)], cwd=WEB, check=True)
    return folder
