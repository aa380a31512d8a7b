"""Where files come from, and that an archive is never held in memory nor unpacked."""

import gzip
import io
import lzma
import os
import tarfile
from pathlib import Path

import pytest

from osmia_memory.models import Skip
from osmia_memory.transcripts.sources import Source, sources


def names(paths: list[str], stdin: bytes | None = None) -> list[str]:
    """Base names of the sources, and reasons of the skips."""
    return [s.name.rsplit("/", 1)[-1] if isinstance(s, Source) else f"SKIP {s.reason}" for s in sources(paths, stdin)]


def archive(path: Path, files: dict[str, bytes], mode: str) -> Path:
    """A tar archive of these files in this order."""
    with tarfile.open(path, mode) as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.mtime = 1_700_000_000
            tar.addfile(info, io.BytesIO(data))
    return path


FILES = {"runs/a.jsonl": b"A", "runs/b.png": b"PNG", "runs/c.json": b"C", "runs/a.meta.json": b"{}", "runs/deep/d.jsonl": b"D"}


def test_a_folder_is_walked_in_order_without_what_is_no_transcript(tmp_path: Path):
    """Images, code and accompanying files are passed over in silence, and so are folders of tools."""
    for name, data in {**FILES, "runs/.git/config.json": b"x", "runs/node_modules/p.json": b"x", "runs/e.py": b"x"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    assert names([str(tmp_path)]) == ["a.jsonl", "c.json", "d.jsonl"]


def test_a_glob_is_expanded_and_an_empty_one_is_named(tmp_path: Path):
    """The caller may quote the pattern."""
    for name in ("a.jsonl", "b.jsonl", "c.txt"):
        (tmp_path / name).write_bytes(b"x")
    assert names([str(tmp_path / "*.jsonl")]) == ["a.jsonl", "b.jsonl"]
    assert names([str(tmp_path / "*.nothing")]) == ["SKIP no file matches"]


def test_a_file_whose_name_holds_a_star_is_a_file(tmp_path: Path):
    """What exists under the given name is meant by it."""
    (tmp_path / "a[1].jsonl").write_bytes(b"x")
    assert names([str(tmp_path / "a[1].jsonl")]) == ["a[1].jsonl"]


def test_a_missing_file_is_named_and_the_others_are_read(tmp_path: Path):
    """One wrong path does not stop a batch."""
    (tmp_path / "a.jsonl").write_bytes(b"x")
    assert names([str(tmp_path / "no.jsonl"), str(tmp_path / "a.jsonl")]) == ["SKIP cannot be read: No such file or directory", "a.jsonl"]


def test_standard_input_is_a_file_or_an_archive():
    """`-` reads what the caller was given."""
    assert names(["-"], b"{}") == ["stdin"]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        info = tarfile.TarInfo("x/a.jsonl")
        info.size = 1
        tar.addfile(info, io.BytesIO(b"A"))
    assert names(["-"], buffer.getvalue()) == ["a.jsonl"]


@pytest.mark.parametrize(("ending", "mode"), [(".tar", "w"), (".tar.gz", "w:gz"), (".tar.xz", "w:xz"), (".bin", "w:xz")])
def test_an_archive_is_known_by_its_content(tmp_path: Path, ending: str, mode: str):
    """Compressed or not, and whatever it is called."""
    path = archive(tmp_path / f"batch{ending}", FILES, mode)
    found = list(sources([str(path)]))
    assert [s.data for s in found if isinstance(s, Source)] == [b"A", b"C", b"D"]
    first = found[0]
    assert isinstance(first, Source)
    assert first.name == f"{path}:runs/a.jsonl"
    assert first.mtime is not None
    assert first.mtime.year == 2023


@pytest.mark.parametrize("mode", ["w", "w:xz"])
def test_accompanying_files_are_found_wherever_they_stand_in_the_archive(tmp_path: Path, mode: str):
    """A solid archive may hold a report after the transcript it belongs to."""
    files = {"x/run.traj.json": b"T", "y/run.traj.json": b"U", "x/report.json": b"RX", "y/report.json": b"RY"}
    path = archive(tmp_path / "batch.tar", files, mode)
    found = {s.name[-15:]: s.siblings.get("report.json") for s in sources([str(path)]) if isinstance(s, Source)}
    assert found == {"x/run.traj.json"[-15:]: b"RX", "y/run.traj.json"[-15:]: b"RY"}


def test_files_of_a_folder_are_siblings_of_each_other(tmp_path: Path):
    """Looked up by name, when asked for."""
    (tmp_path / "a.jsonl").write_bytes(b"x")
    (tmp_path / "report.json").write_bytes(b"R")
    (source,) = sources([str(tmp_path / "a.jsonl")])
    assert isinstance(source, Source)
    assert source.siblings["report.json"] == b"R"
    assert source.siblings.get("none.json") is None
    assert sorted(source.siblings) == ["a.jsonl", "report.json"]


def test_a_cut_archive_gives_what_stands_before_the_cut(tmp_path: Path):
    """The damage is named with the number of files read."""
    path = archive(tmp_path / "batch.tar.gz", {f"{n}.jsonl": bytes(range(256)) * 999 for n in range(9)}, "w:gz")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    *read, skip = sources([str(path)])
    assert read
    assert isinstance(skip, Skip)
    assert skip.reason.startswith("damaged archive: ")


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("xz", lzma.compress)])
def test_a_single_compressed_file_is_unpacked(tmp_path: Path, ending: str, pack):
    """Not every compressed file is an archive."""
    path = tmp_path / f"a.jsonl.{ending}"
    path.write_bytes(pack(b'{"n": 1}'))
    (source,) = sources([str(path)])
    assert isinstance(source, Source)
    assert (source.name, source.data) == (str(tmp_path / "a.jsonl"), b'{"n": 1}')


def test_a_damaged_compressed_file_is_named(tmp_path: Path):
    """Half a gzip file is no traceback."""
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"n": 1}' * 9999)[:50])
    (skip,) = sources([str(path)])
    assert isinstance(skip, Skip)
    assert skip.reason.startswith("damaged compressed file")


def test_zstd_is_named_unless_the_plain_file_lies_beside_it(tmp_path: Path):
    """The plain rollout wins where both exist."""
    (tmp_path / "a.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfdxxxx")
    assert names([str(tmp_path)]) == ["SKIP compressed with zstd, which is not read here: unpack it first (`zstd -d FILE`)"]
    (tmp_path / "a.jsonl").write_bytes(b"{}")
    assert names([str(tmp_path)]) == ["a.jsonl"]


def test_zstd_under_another_name_is_named_too(tmp_path: Path):
    """By its content, whatever its suffix."""
    (tmp_path / "a.jsonl").write_bytes(b"\x28\xb5\x2f\xfdxxxx")
    assert names([str(tmp_path / "a.jsonl")]) == ["SKIP compressed with zstd, which is not read here: unpack it first (`zstd -d FILE`)"]


def test_a_pipe_is_not_waited_for(tmp_path: Path):
    """Named, it is a skip; in a folder it is passed over like a socket or a device."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a.jsonl").write_bytes(b"{}")
    assert names([str(tmp_path / "pipe")]) == ["SKIP no regular file, and not waited for; give a file, or `-` for stdin"]
    assert names([str(tmp_path)]) == ["a.jsonl"]


def test_the_output_of_a_command_can_be_given_as_a_file():
    """What a shell passes for `<(command)`."""
    reader, writer = os.pipe()
    os.write(writer, b'{"n": 1}')
    os.close(writer)
    (source,) = sources([f"/dev/fd/{reader}"])
    os.close(reader)
    assert isinstance(source, Source)
    assert source.data == b'{"n": 1}'
