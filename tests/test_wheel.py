"""The built wheel: what is in it, and that it works where nothing of this checkout is."""

import email
import os
import site
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / "pyproject.toml").is_file(), reason="needs the checkout that the wheel is built from"),
]


def run(*command: str | Path, cwd: Path, status: int = 0) -> str:
    """Output of a command that has to end with this status."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("OSMIA_", "PYTHON"))}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=clean, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def metadata_folder(wheel: Path) -> str:
    """`osmia_memory-<version>.dist-info`."""
    return "-".join(wheel.name.split("-")[:2]) + ".dist-info"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built with what is installed."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that holds the wheel, and its dependencies by a link to ours; it works offline."""
    folder = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "env", cwd=folder)
    programs = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    run(sys.executable, "-m", "pip", "--python", programs / "python", "install", "-q", "--no-deps", "--no-index", wheel, cwd=folder)
    (packages,) = (folder / "env").rglob("site-packages")
    ours = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()}
    (packages / "dependencies.pth").write_text(
        "\n".join(sorted(ours)) + "\n"
    )  # `.pth` files in there are not read: our editable install stays out
    return programs


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    """Code, type marker, template and demo; no tests, caches, notes or files of the checkout."""
    names = [PurePosixPath(name) for name in zipfile.ZipFile(wheel).namelist()]
    inside = [n for n in names if n.parts[0] == "osmia_memory"]
    assert {n.parts[0] for n in names} - {"osmia_memory"} == {metadata_folder(wheel)}
    source = {p.relative_to(ROOT / "src").as_posix() for p in (ROOT / "src" / "osmia_memory").rglob("*.py")}
    assert {str(n) for n in inside if n.suffix == ".py"} == source
    others = {str(n) for n in inside if n.suffix != ".py" and n.parts[1:3] != ("demo", "runs")}
    shipped = {
        f"osmia_memory/{p.relative_to(ROOT)}" for name in ("prompts", "cassettes") for p in (ROOT / name).rglob("*.*") if p.is_file()
    }
    assert "osmia_memory/cassettes/extract_facts/v1/authored.yaml" in shipped
    assert others == {"osmia_memory/py.typed", "osmia_memory/demo/tasks.json", *shipped}
    runs = [n for n in inside if n.parts[1:3] == ("demo", "runs")]
    assert len([n for n in runs if not n.name.endswith(".outcome.json")]) == 14
    assert {n.suffix for n in runs} == {".json", ".jsonl"}
    assert wheel.stat().st_size < 1024**2


def test_the_wheel_says_what_it_needs(wheel: Path) -> None:
    """Its metadata name the license, the Python version, the dependencies and the program."""
    with zipfile.ZipFile(wheel) as archive:
        told = email.message_from_bytes(archive.read(f"{metadata_folder(wheel)}/METADATA"))
        programs = archive.read(f"{metadata_folder(wheel)}/entry_points.txt").decode()
    assert (told["Name"], told["Requires-Python"], told["License-Expression"]) == ("osmia-memory", ">=3.11", "MIT")
    needed = {str(n).split(">")[0].split("<")[0] for n in told.get_all("Requires-Dist") or [] if "extra ==" not in n}
    assert {"duckdb", "jinja2", "orjson", "pydantic", "typer"} <= needed
    assert "osmia-memory = osmia_memory.cli.app:main" in programs


def test_the_installed_program_works_elsewhere(programs: Path, tmp_path: Path) -> None:
    """Demo, extraction and query in an empty folder, from the wheel's own files."""
    home = run(programs / "python", "-c", "import osmia_memory; print(osmia_memory.__file__)", cwd=tmp_path).strip()
    assert Path(home).is_relative_to(programs.parent)
    shown = run(programs / "osmia-memory", "demo", "--store", "memory.duckdb", cwd=tmp_path)
    assert "14 finished runs of three engines on northwind/harbor-queue were read" in shown
    assert shown.count("## Prior Knowledge") == 3
    ask = ("--store", "memory.duckdb", "--tenant", "demo", "--repo", "northwind/harbor-queue", "--now", "2026-03-30T09:00:00Z")
    block = run(programs / "osmia-memory", "query", *ask, "--task", "tools/check tests/unit/test_retry.py: unknown argument", cwd=tmp_path)
    assert block.startswith("## Prior Knowledge\n\n")
    assert "tools/check" in block
    assert sorted(p.name for p in tmp_path.iterdir()) == ["memory.duckdb"]


def test_a_wheel_built_from_the_source_archive_is_the_same(wheel: Path, tmp_path: Path) -> None:
    """Whoever installs the source archive gets every file."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, ROOT, cwd=tmp_path)
    (again,), (source,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        assert not [n for n in archive.getnames() if n.endswith(".pyc") or "__pycache__" in n]
    assert zipfile.ZipFile(again).namelist() == zipfile.ZipFile(wheel).namelist()
