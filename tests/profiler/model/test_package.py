"""The package of a file is known from its path."""

from __future__ import annotations

import pytest

from deepcontext.profiler.model.package import Origin, Package, package_of

SITE = "/home/me/venv/lib/python3.12/site-packages"


@pytest.mark.parametrize(
    ("file", "package"),
    [
        (
            f"{SITE}/transformers/models/llama/modeling_llama.py",
            Package(
                "transformers", Origin.INSTALLED, "transformers/models/llama/modeling_llama.py"
            ),
        ),
        (f"{SITE}/six.py", Package("six", Origin.INSTALLED, "six.py")),
        (
            "/usr/lib/python3/dist-packages/yaml/loader.py",
            Package("yaml", Origin.INSTALLED, "yaml/loader.py"),
        ),
        (
            f"{SITE}/torch/nn/modules/linear.py",
            Package("torch", Origin.FRAMEWORK, "torch/nn/modules/linear.py"),
        ),
        (
            "/usr/lib/python3.12/multiprocessing/spawn.py",
            Package("multiprocessing", Origin.STANDARD, "multiprocessing/spawn.py"),
        ),
        ("/opt/lib/python3.13t/json.py", Package("json", Origin.STANDARD, "json.py")),
        ("<frozen runpy>", Package("runpy", Origin.STANDARD, "<frozen runpy>")),
        (
            "<frozen importlib._bootstrap>",
            Package("importlib", Origin.STANDARD, "<frozen importlib._bootstrap>"),
        ),
        # A package that contains another one: the program imports the inner one.
        (
            f"{SITE}/outer/lib/python3.12/site-packages/inner/a.py",
            Package("inner", Origin.INSTALLED, "inner/a.py"),
        ),
        ("/home/me/train.py", Package("", Origin.USER, "/home/me/train.py")),
        ("<string>", Package("", Origin.USER, "<string>")),
        (
            "/tmp/torchinductor_me/ab/cab.py",
            Package("", Origin.GENERATED, "/tmp/torchinductor_me/ab/cab.py"),
        ),
        ("<eval_with_key>.0", Package("", Origin.GENERATED, "<eval_with_key>.0")),
        ("", Package("", Origin.GENERATED, "")),
    ],
)
def test_package_of_a_file(file: str, package: Package) -> None:
    assert package_of(file) == package
