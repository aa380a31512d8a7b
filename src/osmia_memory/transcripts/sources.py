"""Paths, globs, folders, tar archives and standard input -> one file at a time, with a look at its neighbours.

Memory holds one file, never an archive. A compressed archive is walked twice: the small files that accompany transcripts are
collected first, because a solid archive may hold them after the transcript they belong to. Nothing is unpacked to disk.
"""

import bz2
import glob
import gzip
import io
import lzma
import os
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from stat import S_ISREG
from typing import BinaryIO

from osmia_memory.models import Skip
from osmia_memory.transcripts.sidecar import is_sidecar

MAX_FILE_BYTES = 1024**3
_MAX_SIDECAR_BYTES = 4 * 1024**2
_MAX_SIDECARS_BYTES = 256 * 1024**2  # of one archive
_NOT_WALKED = frozenset({".git", "node_modules", "__pycache__", ".venv", ".hg", ".svn"})
# Of a folder's files, those whose name says that they are no transcript: passed over in silence, unread.
_OTHER_SUFFIXES = frozenset(
    "py pyc pyi go rs js mjs cjs ts tsx jsx java kt rb php c h cc cpp hpp cs swift m sh bash zsh fish ps1 bat sql ex hs ml lua r jl css scss html htm xml svg "
    "png jpg jpeg gif webp ico bmp pdf mp4 mov mp3 wav woff woff2 ttf zip 7z rar jar whl exe dll so dylib a o class bin db sqlite sqlite3 duckdb wal parquet "
    "csv tsv xlsx docx pptx yaml yml toml ini cfg lock diff patch css map rst tex gitignore gitattributes env pem key".split()
)
_QUIET_SUFFIXES = frozenset({"md", "txt", "log", "out", "err"})  # read, and passed over in silence if they are no transcript
_DAMAGE = (tarfile.TarError, EOFError, lzma.LZMAError, zlib.error, OSError)
_Opener = Callable[[], BinaryIO]
_ZSTD = b"\x28\xb5\x2f\xfd"
_GIVEN_STREAMS = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")


@dataclass(frozen=True)
class Source:
    """One file to read. `siblings` gives the bytes of files in its folder by their names; not all need be there."""

    name: str
    data: bytes = field(repr=False)
    siblings: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    mtime: datetime | None = None
    walked: bool = False  # found in a folder, an archive or by a glob, not named by the caller


class FolderFiles(Mapping[str, bytes]):
    """The accompanying files of a folder on disk, read when asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, name: str) -> bytes:
        try:
            path = self._folder / name
            if path.stat().st_size > _MAX_SIDECAR_BYTES:
                raise KeyError(name)
            return path.read_bytes()
        except OSError as error:
            raise KeyError(name) from error

    def __iter__(self) -> Iterator[str]:
        try:
            return iter(sorted(p.name for p in self._folder.iterdir()))
        except OSError:
            return iter(())

    def __len__(self) -> int:
        return sum(1 for _ in self)


def expected_to_be_one(name: str) -> bool:
    """A file of this name that nothing recognises is worth a word, even if nobody asked for it by name."""
    return _suffix(name) not in _OTHER_SUFFIXES | _QUIET_SUFFIXES


def sources(paths: Iterable[str], stdin: bytes | None = None) -> Iterator[Source | Skip]:
    """The files behind `paths` in order: files, folders (recursively, sorted), globs, tar archives, and `-` for `stdin`."""
    for path in paths:
        if path == "-":
            yield from _from_stdin(stdin or b"")
        elif Path(path).is_dir():
            yield from _from_folder(Path(path))
        elif Path(path).exists() or not glob.has_magic(path):
            yield from _from_file(Path(path), walked=False)
        else:
            yield from _from_glob(path)


def _from_stdin(data: bytes) -> Iterator[Source | Skip]:
    if _holds_tar(lambda: io.BytesIO(data)):
        yield from _from_tar(lambda: io.BytesIO(data), "stdin")
    else:
        yield from _plain("stdin", data, {}, None, walked=False)


def _from_folder(folder: Path) -> Iterator[Source | Skip]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in _NOT_WALKED)
        for name in sorted(files):
            if not _is_passed_over(name):
                yield from _from_file(Path(parent) / name, walked=True)


def _from_glob(pattern: str) -> Iterator[Source | Skip]:
    found = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern
    if not found:
        yield Skip(pattern, "no file matches")
    for path in found:
        if Path(path).is_dir():
            if "**" not in pattern:  # "**" lists the files below by itself
                yield from _from_folder(Path(path))
        elif not _is_passed_over(Path(path).name):
            yield from _from_file(Path(path), walked=True)


def _from_file(path: Path, walked: bool) -> Iterator[Source | Skip]:
    name = str(path)
    try:
        stat = path.stat()
        if not (S_ISREG(stat.st_mode) or str(path).startswith(_GIVEN_STREAMS)):
            if not walked:
                yield Skip(name, "no regular file, and not waited for; give a file, or `-` for stdin")
            return
        if not S_ISREG(stat.st_mode):  # `<(command)` of a shell: it can be read once, from its start to its end
            yield from _plain(name, path.read_bytes(), {}, None, walked)
            return
        archive = _holds_tar(lambda: path.open("rb"))
        if not archive and stat.st_size > MAX_FILE_BYTES:
            yield Skip(name, f"{stat.st_size / 1e9:.1f} GB: larger than the limit of {MAX_FILE_BYTES // 2**30} GiB")
            return
        data = b"" if archive else path.read_bytes()
    except OSError as error:
        yield Skip(name, f"cannot be read: {error.strerror or error}")
        return
    mtime = datetime.fromtimestamp(stat.st_mtime, UTC)
    if archive:
        yield from _from_tar(lambda: path.open("rb"), name)
    else:
        yield from _plain(name, data, FolderFiles(path.parent), mtime, walked)


def _plain(name: str, data: bytes, siblings: Mapping[str, bytes], mtime: datetime | None, walked: bool) -> Iterator[Source | Skip]:
    """A file that is no archive, unpacked if it is compressed by itself."""
    if data.startswith(_ZSTD):
        base = name.rsplit("/", 1)[-1]
        if base.removesuffix(".zst") == base or base.removesuffix(".zst") not in siblings:  # the plain file wins where both exist
            yield Skip(name, "compressed with zstd, which is not read here: unpack it first (`zstd -d FILE`)")
        return
    if _is_compressed(data[:6]):
        try:
            data = _unpacked(data)
        except _DAMAGE as error:
            yield Skip(name, f"damaged compressed file: {error}")
            return
        name = name.rsplit(".", 1)[0] if name.endswith((".gz", ".xz", ".bz2")) else name
    yield Source(name, data, siblings, mtime, walked)


def _unpacked(data: bytes) -> bytes:
    with _unpacking(io.BytesIO(data), data) as file:
        unpacked = bytes(file.read(MAX_FILE_BYTES + 1))
    if len(unpacked) > MAX_FILE_BYTES:
        raise EOFError(f"larger than {MAX_FILE_BYTES // 2**30} GiB when unpacked")
    return unpacked


def _unpacking(file: BinaryIO, start: bytes) -> gzip.GzipFile | lzma.LZMAFile | bz2.BZ2File:
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)
    return lzma.LZMAFile(file) if start.startswith(b"\xfd7zXZ") else bz2.BZ2File(file)


def _is_compressed(start: bytes) -> bool:
    return start.startswith((b"\x1f\x8b", b"\xfd7zXZ", b"BZh"))


def _holds_tar(opened: _Opener) -> bool:
    """A tar archive, compressed or not, by its content."""
    with opened() as file:
        start = file.read(512)
        if _is_compressed(start):
            file.seek(0)
            try:
                start = _unpacking(file, start).read(512)
            except _DAMAGE:
                return False
    return start[257:262] == b"ustar"


def _from_tar(opened: _Opener, name: str) -> Iterator[Source | Skip]:
    """The members of a tar archive in their order."""
    beside = _sidecars(opened)
    read = 0
    try:
        with opened() as file, tarfile.open(fileobj=file, mode="r|*") as archive:
            for member in archive:
                archive.members = []  # type: ignore[attr-defined]  # else it remembers every header
                base = PurePosixPath(member.name).name
                if not member.isfile() or _is_passed_over(base):
                    continue
                where = f"{name}:{member.name}"
                if member.size > MAX_FILE_BYTES:
                    yield Skip(where, f"{member.size / 1e9:.1f} GB: larger than the limit of {MAX_FILE_BYTES // 2**30} GiB")
                    continue
                extracted = archive.extractfile(member)
                data = extracted.read() if extracted else b""
                read += 1
                mtime = datetime.fromtimestamp(member.mtime, UTC) if member.mtime else None
                siblings = beside.get(str(PurePosixPath(member.name).parent), {})
                yield from _plain(where, data, siblings, mtime, walked=True)
    except _DAMAGE as error:
        yield Skip(name, f"damaged archive: {error} (after {read} files)")


def _sidecars(opened: _Opener) -> dict[str, dict[str, bytes]]:
    """The accompanying files of an archive, by folder and name."""
    found: dict[str, dict[str, bytes]] = {}
    kept = 0
    try:
        with opened() as file, tarfile.open(fileobj=file, mode="r|*") as archive:
            for member in archive:
                archive.members = []  # type: ignore[attr-defined]
                path = PurePosixPath(member.name)
                fits = member.size <= _MAX_SIDECAR_BYTES and kept + member.size <= _MAX_SIDECARS_BYTES
                if member.isfile() and is_sidecar(path.name) and fits:
                    extracted = archive.extractfile(member)
                    found.setdefault(str(path.parent), {})[path.name] = extracted.read() if extracted else b""
                    kept += member.size
    except _DAMAGE:
        return found  # the reading pass says what is wrong with the archive
    return found


def _is_passed_over(base: str) -> bool:
    """Of a walked folder: an accompanying file, or one whose suffix says that it is no transcript."""
    return is_sidecar(base) or _suffix(base) in _OTHER_SUFFIXES


def _suffix(name: str) -> str:
    base = name.rsplit("/", 1)[-1]
    return base.rsplit(".", 1)[-1].lower() if "." in base else ""
