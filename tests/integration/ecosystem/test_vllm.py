"""vLLM on a processor, offline and as a server, by the commands of its how-to.

Its engine and worker are killed when the program ends, so that their last snapshots are their profiles.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.summaries.roles import Role, roles
from tests.integration.ecosystem import jobs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BIN = Path(sys.prefix) / "vllm" / "bin"  # tools/make_vllm_venv.sh makes it
pytestmark = [
    pytest.mark.ecosystem,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not BIN.exists(), reason="needs vLLM: tools/make_vllm_venv.sh"),
]
DEEPCONTEXT = (str(BIN / "python"), "-m", "deepcontext")
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "profile-an-llm-server.md"
TESTED = re.compile(r"^<!-- tested: \S+ -->\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = TESTED.findall(PAGE.read_text(encoding="utf-8"))
SERVER, OFFLINE = (
    [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
    for language, text in BLOCKS
    if language == "console"
)
(PROGRAM,) = (text for language, text in BLOCKS if language == "python")
# A model that needs no download: its weights are random, and always the same.
DUMMY = {"load_format": "dummy", "max_model_len": 128, "max_num_seqs": 8, "enforce_eager": True}
ENVIRONMENT = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
}
MODEL = """
import json, pathlib
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

folder = pathlib.Path("model")
folder.mkdir()
letters = sorted(pre_tokenizers.ByteLevel.alphabet())
vocabulary = {token: number for number, token in enumerate(["<s>", "</s>", *letters])}
tokenizer = Tokenizer(models.BPE(vocabulary, []))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
tokenizer.decoder = decoders.ByteLevel()
tokenizer.save(str(folder / "tokenizer.json"))
words = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}
(folder / "tokenizer_config.json").write_text(json.dumps(words))
config = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "float32",
    "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "vocab_size": 320,
    "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 64,
    "max_position_embeddings": 256, "bos_token_id": 0, "eos_token_id": 1,
}
(folder / "config.json").write_text(json.dumps(config))
"""
ATTENTION = "vllm::unified_attention_with_output"
AT_WORK = {Role.ENGINE, Role.WORKER}


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Make a folder with the files and a model."""
    jobs.write(folder, files)
    subprocess.run([str(BIN / "python"), "-c", MODEL], cwd=folder, check=True)


def words_of(command: str) -> tuple[str, ...]:
    """Return a command of the page, with the deepcontext of the environment of vLLM."""
    name, *words = shlex.split(command)
    assert name == "deepcontext"
    return (*DEEPCONTEXT, *words)


def without_us(words: Sequence[str]) -> tuple[str, ...]:
    begin = next(at for at, word in enumerate(words) if word in {"vllm", "offline.py"})
    return ("python",) * words[begin].endswith(".py") + tuple(words[begin:])


def start(folder: Path, words: Sequence[str], tag: str) -> subprocess.Popen[str]:
    environment = {**jobs.environment(tag, str(BIN)), **ENVIRONMENT}
    return jobs.start(folder, words, tag, environment)


def roles_with_operators(folder: Path) -> set[Role]:
    """Return the roles of the processes that have operators; the worker's are those of the model."""
    profiles = jobs.profiles(folder)
    return {
        role
        for profile, role in zip(profiles, roles(profiles), strict=True)
        if (
            jobs.has_operator(profile, ATTENTION)
            if role is Role.WORKER
            else len(profile.query().kind("operator").nodes())
        )
    }


def check_readers(folder: Path, commands: Sequence[str]) -> None:
    """Run the commands that read the profiles; the report lists the processes by their roles."""
    worker = next(
        profile.run.pid for profile in jobs.profiles(folder) if "Worker" in profile.run.process_name
    )
    for command in commands:
        words = [str(worker) if word.isdigit() else word for word in words_of(command)]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        if words[len(DEEPCONTEXT)] == "report" and "--process" not in words:
            table = done.stdout.partition("Processes (3)")[2].partition("\n\n")[0]
            assert all(
                re.search(rf"^ +\d+ +{role} ", table, re.MULTILINE) for role in ("engine", "worker")
            )


def ask(port: int, path: str, body: Mapping[str, object] | None = None) -> bytes:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        None if body is None else json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        return bytes(answer.read())


def wait_until_serving(process: subprocess.Popen[str], port: int) -> None:
    until = time.monotonic() + 400
    while True:
        try:
            ask(port, "/health")
        except (urllib.error.URLError, ConnectionError):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.5)
        else:
            return


def completion(port: int, prompt: str) -> str:
    body = {"model": "model", "prompt": prompt, "max_tokens": 32, "temperature": 0}
    answer = json.loads(ask(port, "/v1/completions", {**body, "ignore_eos": True}))
    return str(answer["choices"][0]["text"])


def serve(folder: Path, words: Sequence[str], *, recorded: bool) -> tuple[int, list[str], str]:
    """Return exit status, answers and output of a server that is ended by Ctrl-C."""
    write(folder, {})
    port = jobs.free_port()
    options = [f"--{name.replace('_', '-')}={value}" for name, value in DUMMY.items()]
    options = [option.removesuffix("=True") for option in options]
    words = [str(port) if word.isdigit() else word for word in words]
    tag = str(uuid.uuid4())
    process = start(
        folder, (*words, *options, "--host", "127.0.0.1", "--served-model-name", "model"), tag
    )
    wait_until_serving(process, port)
    answers = [completion(port, prompt) for prompt in ("a tiny model", "answers") * 4]
    until = time.monotonic() + 60
    while recorded and AT_WORK - roles_with_operators(folder):
        assert time.monotonic() < until, roles_with_operators(folder)
        time.sleep(1)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert jobs.all_ended(tag) == []
    posted = re.sub(r"127\.0\.0\.1:\d+", "", output)
    return process.returncode, answers, re.sub(r".*/health.*\n", "", posted)


def test_server(tmp_path: Path) -> None:
    words, *readers = SERVER
    plain = serve(tmp_path / "plain", without_us(words_of(words)), recorded=False)
    assert plain[0] == 0
    profiled = tmp_path / "profiled"
    assert serve(profiled, words_of(words), recorded=True) == plain
    found = jobs.profiles(profiled)
    assert sorted(role.value for role in roles(found)) == ["engine", "server", "worker"]
    assert roles_with_operators(profiled) >= AT_WORK
    check_readers(profiled, readers)


def test_offline(tmp_path: Path) -> None:
    words, *readers = OFFLINE
    options = ", ".join(f"{name}={value!r}" for name, value in DUMMY.items())
    program = PROGRAM.replace('LLM("./model"', f'LLM("./model", {options}')
    assert program != PROGRAM
    results = []
    for name, command in (("plain", without_us(words_of(words))), ("profiled", words_of(words))):
        write(tmp_path / name, {"offline.py": program})
        tag = str(uuid.uuid4())
        process = start(tmp_path / name, command, tag)
        output, errors = process.communicate(timeout=400)
        assert jobs.all_ended(tag) == []
        assert process.returncode == 0, errors
        results.append(output)
    assert results[1].startswith(results[0])
    assert results[0]
    assert roles_with_operators(tmp_path / "profiled") >= AT_WORK
    check_readers(tmp_path / "profiled", readers)
