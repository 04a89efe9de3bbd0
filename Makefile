# Everything a checkout needs. `make demo` and `make test` do all the set-up on a fresh machine with
# Debian's python3, g++, cmake and git.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
DEMO_PROFILE := demo.dcprof
# Tests here kill processes, race threads and measure: on a shared machine one of two thousand may
# fail for lack of processor time. It is run once more and named; RERUNS=0 turns this off.
RERUNS ?= 1
# Test processes of the default suite side by side: one more than two processors, because a third of the
# time tests wait. Tests hold beside other work, so also beside each other.
JOBS ?= 3
PYTEST_SUITE = $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal --reruns $(RERUNS) --max-suite-reruns 3 --rerun-show-tracebacks

.PHONY: help demo quick quick-check quick-test test check fmt develop native-test native-test-clang native-test-aarch64 tidy web pictures browser long compat newest fuzz soak ecosystem processes traces wheels cases store-cases gains mutations gpu sanitize sanitize-soak bench clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 16

$(VENV)/.created:
	tools/make_venv.sh $(PYTHON) $(VENV)
	$(BIN)/python -m pip install -q --upgrade "pip>=25.1"
	touch $@

$(VENV)/.groups: $(VENV)/.created pyproject.toml
	$(BIN)/python -m pip install -q --group dev
	touch $@

NATIVE_SOURCES := $(shell find native -name '*.cpp' -o -name '*.h' -o -name CMakeLists.txt) CMakeLists.txt

$(VENV)/.installed: $(VENV)/.groups $(NATIVE_SOURCES) pyproject.toml
	$(BIN)/python -m pip install -q --no-build-isolation -C cmake.define.DEEPCONTEXT_STRICT=ON -e .
	touch $@

develop: $(VENV)/.installed ## virtual environment with everything, package installed editable

demo: $(VENV)/.installed ## profile the transformer example and print the report
	$(BIN)/deepcontext profile --no-report -o $(DEMO_PROFILE) examples/torch_transformer.py
	$(BIN)/deepcontext report $(DEMO_PROFILE)
	@echo
	@echo "The profile is $(DEMO_PROFILE). Next: $(BIN)/deepcontext profile YOUR_SCRIPT.py"

# Tests that start neither frameworks nor browsers nor many programs; `make test` runs the others.
QUICK_TESTS := tests/profiler tests/ui tests/analyzers tests/fault_pairs tests/architecture tests/collectors/jax tests/collectors/torch \
  $(addprefix --ignore=tests/,ui/browser ui/test_page_size.py ui/test_engine.py \
  $(addprefix ui/test_cli_,profile.py streams.py overhead.py doctor.py) \
  $(addprefix profiler/recording/test_,child_end.py odd_text.py operations.py)) \
  --deselect=tests/architecture/test_docs.py::test_commands_and_programs_run

quick: $(VENV)/.installed ## fast static checks and tests, for the inner loop: about 90 seconds
	$(MAKE) -j2 --output-sync=target quick-check quick-test

quick-check:
	$(BIN)/ruff check -q .
	$(BIN)/ruff format -q --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

quick-test:
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal $(QUICK_TESTS)

test: $(VENV)/.installed ## static checks, native tests, the default test suite
	$(MAKE) -j2 --output-sync=target check native-test web
	$(PYTEST_SUITE)

check: $(VENV)/.installed ## formatters, linters, type checkers, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $$(git ls-files 'native/*.cpp' 'native/*.h')
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/codespell src native tests docs examples benchmarks README.md

fmt: $(VENV)/.groups ## format everything
	$(BIN)/ruff check --fix-only -q .
	$(BIN)/ruff format -q .
	$(BIN)/clang-format -i $$(git ls-files 'native/*.cpp' 'native/*.h')

native-test-aarch64: ## C++ tests for aarch64, run by qemu, with plain and with signed return addresses
	tools/native_tests_aarch64.sh
	tools/native_tests_aarch64.sh -s stack_walk frame_row symbols

native-test: $(VENV)/.installed ## C++ tests of the native core
	cmake -S . -B build/native-test -DDEEPCONTEXT_EXTENSION=OFF -DDEEPCONTEXT_TESTS=ON -DDEEPCONTEXT_FUZZ=ON -DDEEPCONTEXT_STRICT=ON >/dev/null
	cmake --build build/native-test -j2 >/dev/null
	ctest --test-dir build/native-test --output-on-failure

CLANG := $(shell command -v clang++-19 || command -v clang++)
CLANG_FLAGS = -DCMAKE_CXX_COMPILER=$(CLANG) -DDEEPCONTEXT_TESTS=ON -DDEEPCONTEXT_STRICT=ON

native-test-clang: $(VENV)/.installed ## the same tests, built by clang; skipped where there is none
ifeq ($(CLANG),)
	@echo "skipped: the native tests were not built by clang, because there is no clang++ here"
else
	cmake -S . -B build/native-test-clang $(CLANG_FLAGS) -DCMAKE_BUILD_TYPE=Dev -DCMAKE_CXX_FLAGS=-O2 -DDEEPCONTEXT_EXTENSION=OFF >/dev/null
	cmake --build build/native-test-clang -j2 >/dev/null
	ctest --test-dir build/native-test-clang --output-on-failure
endif

tidy: $(VENV)/.installed ## clang-tidy over the native code
	cmake -S . -B build/tidy -DDEEPCONTEXT_TESTS=ON -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
	  -DPython_EXECUTABLE=$(abspath $(BIN)/python) >/dev/null
	git ls-files 'native/*.cpp' ':!native/abi' | xargs -n 1 -P 2 $(BIN)/clang-tidy -p build/tidy --quiet

pictures: $(VENV)/.installed browser ## the pictures of the documentation, from real runs
	$(BIN)/python -m pip install -q "pillow>=11"
	$(BIN)/python tools/make_pictures.py

web: ## check the page's sources, and that the committed bundle is their build (needs node)
	tools/check_web.sh

browser: $(VENV)/.installed ## Chromium for the browser tests
	tools/setup_browser.sh $(BIN)/python

long: $(VENV)/.installed browser ## tests of five seconds and more, and of the page in a browser; CI runs them
	$(PYTEST_SUITE) -m "long or browser"

compat: $(VENV)/.installed ## other versions of Python and of the frameworks, each in an environment
	$(BIN)/python -m pytest -q -m compat tests/compat

newest: $(VENV)/.installed ## the newest torch and JAX on PyPI: do they still calibrate?
	$(BIN)/python -m pytest -q -m compat tests/compat -k newest

fuzz: $(VENV)/.installed ## random input to each reader of foreign bytes, $$FUZZ_S seconds each (100)
	$(BIN)/python -m pytest -q -m fuzz tests/fuzz

soak: $(VENV)/.installed ## ten thousand steps, and half an hour of random sessions: no growth, no loss
	$(BIN)/python -m pytest -q -m soak --timeout 3600

$(VENV)/vllm/.made: $(VENV)/.installed tools/make_vllm_venv.sh
	tools/make_vllm_venv.sh $(BIN)/python $(VENV)/vllm
	touch $@

ecosystem: $(VENV)/.installed $(VENV)/vllm/.made ## third-party programs and libraries
	$(BIN)/python -m pip install -q "transformers>=4.50" accelerate lightning diffusers datasets torchmetrics \
	  sentence-transformers peft torch_geometric gpytorch captum skorch einops tensordict pytorch-ignite \
	  torchdiffeq flax optax equinox dm-haiku numpyro jaxtyping mpich \
	  gunicorn "ray[train]" distributed mpi4py
	$(BIN)/python -m pytest -q -m ecosystem --timeout 1800

processes: $(VENV)/.installed ## every way to start a child with every way to end, and a storm of children
	$(BIN)/python -m pytest -q -m processes --timeout 1200 tests/integration/processes

traces: $(VENV)/.installed ## real traces of other profilers (DEEPCONTEXT_TRACES names their folder), against an independent count
	$(BIN)/python -m pytest -q -m traces tests/profiler/importing

wheels: $(VENV)/.installed ## wheels of this processor and the sdist into dist/, each installed and tried
	tools/make_roots.sh
	tools/build_wheels.sh
	$(BIN)/python -m pytest -q -m wheels tests/wheels

cases: $(VENV)/.installed ## all fault pairs recorded afresh, three times (hours): are the faults told, and nothing else?
	DEEPCONTEXT_PAIRS=build/fault_pairs $(BIN)/python -m pytest -q -s -m cases tests/fault_pairs tests/analyzers tests/integration/test_evaluation.py

store-cases: $(VENV)/.installed ## the profiles that the default suite replays, from the first recording of `make cases`
	$(BIN)/python -m tests.fault_pairs.store build/fault_pairs/0

gains: $(VENV)/.installed ## what the fixes that the analyzers advise save, against what is expected
	$(BIN)/python -m tests.fault_pairs.gains build/fault_pairs/gains

mutations: $(VENV)/.installed ## each mend of the GPU collectors taken out: its scenarios must fail
	$(BIN)/python -m pytest -q -m mutations --timeout 1800 tests/collectors/gpu/test_mutations.py

gpu: $(VENV)/.installed ## on a machine with a GPU
	$(BIN)/python -m pytest -q -m gpu --timeout 600

sanitize: $(VENV)/.installed ## native tests under ASan, UBSan and TSan
	tools/sanitize.sh $(BIN)/python

sanitize-soak: $(VENV)/.installed ## half an hour of random sessions under ASan and UBSan, of C++ tests under TSan
	tools/sanitize.sh $(BIN)/python soak

bench: $(VENV)/.installed ## measure what docs/benchmarks.md shows
	$(BIN)/python benchmarks/run_all.py

clean: ## remove what was built
	rm -rf build dist $(VENV)
