"""What the package says of itself agrees everywhere, and the lock holds what it must."""

import itertools
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "requirements.lock").read_text()
OLDEST = (ROOT / "requirements-oldest.lock").read_text()

# Spelt in parts, since this file is one of those that are searched.
REGISTRY_HOSTS = [f"{name}.org" for name in ("pypi", "pythonhosted", "deb.debian", "npmjs")]


def tracked_files() -> list[Path]:
    """Return the files that git keeps, or skip where this is not a clone."""
    try:
        names = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git clone, or no git")
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


def test_version_is_the_same_everywhere():
    citation = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    newest = re.search(r"^## \[(\S+)\] - ", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert citation is not None
    assert newest is not None
    assert metadata.version("bayesgen") == PROJECT["version"]
    assert citation[1] == PROJECT["version"]
    assert newest[1] == PROJECT["version"]


def test_installed_metadata_is_that_of_pyproject():
    installed = metadata.metadata("bayesgen")
    assert installed["Summary"] == PROJECT["description"]
    assert installed["License-Expression"] == PROJECT["license"]
    assert installed["Requires-Python"] == PROJECT["requires-python"]
    assert set(installed.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    scripts = {
        entry.name: entry.value
        for entry in metadata.distribution("bayesgen").entry_points
        if entry.group == "console_scripts"
    }
    assert scripts == PROJECT["scripts"]
    targets = re.findall(r"\]\(([^)]+)\)", installed.get_payload())
    assert targets
    assert all(target.startswith(PROJECT["urls"]["Source"]) for target in targets)


def versions(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s\\;]+)", lock, re.MULTILINE))


def test_lock_satisfies_every_declared_dependency():
    locked = versions(LOCK)
    extras = PROJECT["optional-dependencies"].values()
    declared = [*PROJECT["dependencies"], *itertools.chain.from_iterable(extras)]
    for requirement in map(Requirement, declared):
        version = locked.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not in the lock: run `make lock`"
        assert requirement.specifier.contains(version), (
            f"the lock has {requirement.name} {version}: run `make lock`"
        )


def test_the_lower_bounds_are_what_make_oldest_installs():
    """So that a bound is a claim that was tried."""
    locked, extras = versions(OLDEST), PROJECT["optional-dependencies"]
    used = [extras[name] for name in extras if name not in ("dev", "docs")]
    for requirement in map(Requirement, [*PROJECT["dependencies"], *itertools.chain(*used)]):
        (bound,) = requirement.specifier
        assert bound.operator == ">=", requirement
        assert Version(locked[canonicalize_name(requirement.name)]) == Version(bound.version), (
            f"requirements-oldest.lock is not at {requirement}: run `make lock`"
        )


@pytest.mark.parametrize("lock", [LOCK, OLDEST], ids=["newest", "oldest"])
def test_lock_gives_hashes_and_no_addresses(lock):
    entries = re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE)[1:]
    assert len(entries) > 50
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in lock
    assert not re.search(r"^\s*--(?!hash)", lock, re.MULTILINE)


@pytest.mark.parametrize("extra", ["plots", "dask"])
def test_what_names_an_extra_finds_it(extra):
    sources = [path.read_text() for path in (ROOT / "bayesgen").rglob("*.py")]
    assert sum(f'pip install "bayesgen[{extra}]"' in text for text in sources) == 1
    assert PROJECT["optional-dependencies"][extra]


def test_no_tracked_file_names_a_registry_host():
    naming = [
        f"{path.relative_to(ROOT)}: {host}"
        for path in tracked_files()
        for host in REGISTRY_HOSTS
        if host.encode() in path.read_bytes()
    ]
    assert naming == []


@pytest.mark.parametrize("name", ["tools/bootstrap", ".ci/run"])
def test_scripts_are_executable(name):
    assert os.access(ROOT / name, os.X_OK)


@pytest.mark.skipif(os.name != "posix", reason="tools/bootstrap is a POSIX shell script")
def test_bootstrap_passes_over_pythons_that_fail_or_are_too_old(tmp_path):
    """A pyenv shim without a version behind it, and an old python3; the right one only in pyenv."""

    def script(path: Path, body: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    version = f"3.{sys.version_info.minor}"
    shims, pyenv = tmp_path / "shims", tmp_path / "py env"
    for name in ("python", "python3", "python3.12", "python3.13", "python3.14"):
        script(shims / name, "echo 'pyenv: command not found' >&2; exit 127")
    script(pyenv / "versions" / "3.8.1" / "bin" / "python3.8", "exit 1")
    right = pyenv / "versions" / f"{version}.99" / "bin" / f"python{version}"
    script(right, f'echo "{version} $0"')  # what the real one answers to the script's question
    for tool in ("python3.12", "python3.13", "python3.14"):
        if tool != right.name:
            script(right.with_name(tool), "exit 1")

    answer = subprocess.run(
        ["sh", ROOT / "tools" / "bootstrap", "--find-python"],
        env={
            "PATH": f"{shims}:/usr/bin:/bin",
            "HOME": str(tmp_path),
            "PYENV_ROOT": str(pyenv),
            "PYENV_VERSION": "3.8.1",
            "VIRTUAL_ENV": str(tmp_path / "elsewhere"),
            "PYTHONPATH": str(tmp_path),
        },
        capture_output=True,
        check=True,
        text=True,
    )
    python = Path(answer.stdout.strip())
    # Another fitting Python of this machine may stand before it in the order of versions.
    assert python.is_file()
    assert not python.is_relative_to(shims)
    if version == "3.12":
        assert python == right
