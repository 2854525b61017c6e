"""Arrays of Zarr stores as ranks read them: all files from one folder, and no chunk far larger than its array says.

zarr-python opens each file by its name, takes a missing chunk for zeros, and unpacks a chunk before it looks at its
size. So a store that another program replaces or deletes would be read as a mix or as zeros, and a small file could
fill the memory. Here a rank opens the folder of an array once, which stays whatever becomes of its name, and opens the
files from there. Codecs unpack no more bytes than a chunk can have.

This module imports zarr, so others import it only when they need it.
"""

from __future__ import annotations

import asyncio
import bz2
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import zarr
from zarr.abc.codec import BytesBytesCodec
from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest

__all__ = ["Folder", "bounded", "most_bytes"]

_METADATA = ("zarr.json", ".zarray", ".zgroup")  # one of them makes a folder an array or a group


class Folder(Store):  # type: ignore[misc]  # mypy does not look into zarr
    """A folder of a store that this rank has open, to be read. Keys are the names of files in it.

    Attributes:
        path: the name of the folder, for errors.
        number: its descriptor.
        most: bytes that a file in it may have.
        missing: called with the key of a file that is not there; it may raise an error.
    """

    def __init__(self, path: str, within: Folder | None = None) -> None:
        """Open a folder by its name, in another open folder if there is one; it must be there."""
        super().__init__(read_only=True)
        flags = os.O_RDONLY | os.O_DIRECTORY
        self.number: int = os.open(path, flags, dir_fd=None if within is None else within.number)
        self.path: str = path if within is None else os.path.join(within.path, path)
        self.most: int = sys.maxsize
        self.missing: Callable[[str], None] = lambda key: None

    def close(self) -> None:
        """Close the folder."""
        if self.number >= 0:
            os.close(self.number)
            self.number = -1
        super().close()

    def status(self, key: str) -> os.stat_result | None:
        """What the system says of a file or folder; None if it is not there."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return os.stat(key, dir_fd=self.number)
        return None

    def folders(self, prefix: str) -> list[str]:
        """The names of the folders in a folder, sorted."""
        number = os.open(prefix or ".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self.number)
        try:
            with os.scandir(number) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir())
        finally:
            os.close(number)

    def has_its_name(self) -> bool:
        """Whether the name of the folder still leads to it."""
        with suppress(OSError):
            return os.stat(self.path).st_ino == os.fstat(self.number).st_ino
        return False

    def is_node(self, prefix: str = "") -> bool:
        """Whether a folder is an array or a group."""
        return any(self.status(os.path.join(prefix, name)) is not None for name in _METADATA)

    def _read(self, key: str, part: ByteRequest | None) -> bytes | None:
        try:
            number = os.open(key, os.O_RDONLY | os.O_NONBLOCK, dir_fd=self.number)  # a pipe would wait for a writer
        except (FileNotFoundError, NotADirectoryError):
            self.missing(key)
            return None

        try:
            status = os.fstat(number)
            if not stat.S_ISREG(status.st_mode):
                raise ValueError(f"{key} is no file")
            if status.st_size > self.most:
                raise ValueError(f"{key} has {status.st_size} bytes, which is far more than a chunk of the array has")

            with open(number, "rb", closefd=False) as file:
                start, stop = _interval(part, status.st_size)
                file.seek(start)
                return file.read(stop - start)
        finally:
            os.close(number)

    # What zarr calls, and what its base class asks for: Rote lists folders by itself, and writes nothing here.

    supports_writes = supports_deletes = supports_listing = False

    def __eq__(self, other: object) -> bool:
        return self is other

    def __str__(self) -> str:
        return self.path

    async def get(self, key: str, prototype: Any, byte_range: ByteRequest | None = None) -> Any:
        """The bytes of a file, or a part of them; None if it is not there."""
        data = await asyncio.to_thread(self._read, key, byte_range)
        return None if data is None else prototype.buffer.from_bytes(data)

    async def get_partial_values(self, prototype: Any, key_ranges: Iterable[tuple[str, ByteRequest | None]]) -> Any:
        """The bytes of parts of files."""
        return [await self.get(key, prototype, part) for key, part in key_ranges]

    async def exists(self, key: str) -> bool:
        """Whether there is a file."""
        return self.status(key) is not None

    def list(self, *arguments: Any) -> Any:
        """Refuse to list, and to write."""
        raise NotImplementedError

    list_prefix = list_dir = set = delete = list


def _interval(part: ByteRequest | None, size: int) -> tuple[int, int]:
    """The first byte of a part of a file, and the one after the last.

    >>> _interval(None, 9), _interval(RangeByteRequest(2, 5), 9), _interval(SuffixByteRequest(4), 9)
    ((0, 9), (2, 5), (5, 9))
    """
    if isinstance(part, RangeByteRequest):
        return part.start, min(part.end, size)
    if isinstance(part, OffsetByteRequest):
        return part.offset, size
    if isinstance(part, SuffixByteRequest):
        return max(size - part.suffix, 0), size
    return 0, size


# --- codecs ----------------------------------------------------------------------------------------------------------


def bounded(array: Any) -> Any:
    """The array, with codecs that refuse chunks which unpack to far more bytes than the array says."""
    opened = array.async_array
    metadata = opened.metadata
    most = most_bytes(array.chunks, array.dtype.itemsize)

    if metadata.zarr_format == 2:
        filters = metadata.filters and tuple([_second(codec, most) for codec in metadata.filters])
        metadata = replace(metadata, compressor=_second(metadata.compressor, most), filters=filters)
    else:
        metadata = replace(metadata, codecs=tuple([_third(codec, most) for codec in metadata.codecs]))

    return zarr.Array(zarr.AsyncArray(metadata, opened.store_path, opened.config))


def most_bytes(extents: Sequence[int], itemsize: int) -> int:
    """The most bytes of a chunk in any stage of packing. Filters may store numbers of other types, 16 times as wide."""
    return 16 * prod(extents) * itemsize + (1 << 16)


def _second(codec: Any, most: int) -> Any:
    """A codec of version 2 that unpacks at most so many bytes, if it is one that could unpack any number."""
    return _Second(codec, most) if getattr(codec, "codec_id", None) in _UNPACKERS else codec


def _third(codec: Any, most: int) -> Any:
    """A codec of version 3 that unpacks at most so many bytes, if it is one that could unpack any number."""
    if isinstance(codec, zarr.codecs.ShardingCodec):
        return replace(codec, codecs=tuple([_third(inner, most) for inner in codec.codecs]))
    return _Third(codec, most) if isinstance(codec, BytesBytesCodec) and _name(codec) in _UNPACKERS else codec


def _name(codec: Any) -> str:
    return str(codec.to_dict()["name"]).removeprefix("numcodecs.")


@dataclass(frozen=True)
class _Second:
    """A codec of version 2, which decodes as those of numcodecs do."""

    codec: Any
    most: int
    codec_id = "bounded"

    def decode(self, buf: Any, out: Any = None) -> Any:
        unpacked = _UNPACKERS[self.codec.codec_id](bytes(buf), self.codec.get_config(), self.most)
        return self.codec.decode(buf, out) if unpacked is None else unpacked

    def encode(self, *arguments: Any) -> Any:
        raise NotImplementedError

    get_config = from_config = encode  # which zarr wants to be there, and calls only to write


@dataclass(frozen=True)
class _Third(BytesBytesCodec):  # type: ignore[misc]  # mypy does not look into zarr
    """A codec of version 3."""

    codec: Any
    most: int
    is_fixed_size = False

    async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        unpack, options = _UNPACKERS[_name(self.codec)], self.codec.to_dict().get("configuration", {})
        unpacked = await asyncio.to_thread(unpack, chunk_data.to_bytes(), options, self.most)
        if unpacked is None:
            return next(iter(await self.codec.decode([(chunk_data, chunk_spec)])))
        return chunk_spec.prototype.buffer.from_bytes(unpacked)

    def compute_encoded_size(self, *arguments: Any) -> Any:
        raise NotImplementedError


def _in_steps(new: Callable[[], Any], data: bytes, most: int) -> bytes:
    """Unpack one stream after the other, by decompressors that stop after a number of bytes.

    >>> _in_steps(zlib.decompressobj, zlib.compress(b"one") + zlib.compress(b"two"), 6)
    b'onetwo'
    >>> _in_steps(zlib.decompressobj, zlib.compress(bytes(1000)), 99)
    Traceback (most recent call last):
    ...
    ValueError: a chunk unpacks to more than 99 bytes, which is far more than the array says
    """
    parts, nbytes = [], 0
    while data:
        stream = new()
        parts.append(stream.decompress(data, most - nbytes + 1))  # one byte more than allowed tells that there are more
        nbytes += len(parts[-1])
        _check(nbytes, most)

        if not stream.eof:
            raise EOFError("a chunk ends before its compressed data do")
        data = stream.unused_data.lstrip(b"\0")
    return b"".join(parts)


def _check(nbytes: int, most: int) -> None:
    """Refuse a chunk of more bytes: those it has, or those that its header claims, for codecs unpack no more."""
    if nbytes > most:
        raise ValueError(f"a chunk unpacks to more than {most} bytes, which is far more than the array says")


def _claimed_by_zstd(data: bytes) -> int:
    """The bytes that frames of Zstandard claim to hold, or else that their blocks can hold (RFC 8878, 3.1).

    >>> _claimed_by_zstd(bytes.fromhex("28b52ffd 2003 190000 616263"))
    3
    """
    total = at = 0
    while at + 8 <= len(data):
        magic, flags = data[at : at + 4], data[at + 4]
        if magic[1:] == b"\x2a\x4d\x18":  # a frame to be skipped, which has its length next
            at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
            continue
        if magic != b"\x28\xb5\x2f\xfd":
            break

        # The header: the flags, the size of the window unless there is one segment, the dictionary's name, the claim.
        single, checksum = flags >> 5 & 1, flags >> 2 & 1
        at += 5 + (1 - single) + (0, 1, 2, 4)[flags & 3]
        size = (single, 2, 4, 8)[flags >> 6]
        claim = int.from_bytes(data[at : at + size], "little") + 256 * (size == 2)
        at += size

        # The blocks, of at most 128 KiB each: three bytes of header, then one byte that is repeated, or many.
        blocks, last = 0, False
        while not last and at + 3 <= len(data):
            header = int.from_bytes(data[at : at + 3], "little")
            last, repeats = bool(header & 1), header >> 1 & 3 == 1
            at += 3 + (1 if repeats else header >> 3)
            blocks += 1
        at += 4 * checksum
        total += claim if size else blocks << 17
    return total


def _xz(options: Mapping[str, Any]) -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(options.get("format", lzma.FORMAT_XZ), filters=options.get("filters"))


# By its name, how a codec unpacks at most so many bytes: it returns them; or it returns None after a look at what the
# data claim, and then the codec itself may unpack them.
_UNPACKERS: dict[str, Callable[[bytes, Mapping[str, Any], int], bytes | None]] = {
    "zlib": lambda data, options, most: _in_steps(zlib.decompressobj, data, most),
    "gzip": lambda data, options, most: _in_steps(lambda: zlib.decompressobj(zlib.MAX_WBITS + 16), data, most),
    "bz2": lambda data, options, most: _in_steps(bz2.BZ2Decompressor, data, most),
    "lzma": lambda data, options, most: _in_steps(lambda: _xz(options), data, most),
    "zstd": lambda data, options, most: _check(_claimed_by_zstd(data), most),
    "blosc": lambda data, options, most: _check(int.from_bytes(data[4:8], "little"), most),
    "lz4": lambda data, options, most: _check(int.from_bytes(data[:4], "little"), most),
}
