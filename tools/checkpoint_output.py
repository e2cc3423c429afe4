"""Writes a checkpoint of shardc, version 3 (docs/checkpoint_format.md): one file of tensors, the digests of its blocks, and the manifest.

The folder appears whole or not at all: it is written as DIR.partial, and renamed when all of it is on the disk.
"""

import ctypes
import ctypes.util
import fcntl
import json
import math
import os
import pathlib
import shutil

from checkpoint_archives import ITEM_BYTES
from failure import Failure

BLOCK_BYTES = 256 << 10
TYPES = {"float32": ("f32", "F32"), "bfloat16": ("bf16", "BF16"), "float16": ("f16", "F16")}
TENSORS, BLOCKS, MANIFEST = "rank-00000.safetensors", "rank-00000.blocks", "manifest.json"
INSTALL = "pip install xxhash, or the Debian package libxxhash0"


class Digest128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def xxh3_128():
    """Returns a function that gives the 16 bytes of the digest of bytes, by the package xxhash or by the library of that name."""
    try:
        import xxhash
        return lambda data: xxhash.xxh3_128_digest(data)
    except ImportError:
        pass
    try:
        function = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0").XXH3_128bits
    except (OSError, AttributeError):
        raise Failure(f"digests need xxHash; type: {INSTALL}") from None
    function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_size_t], Digest128

    def digest(data) -> bytes:
        # A view that may be written to needs no copy.
        is_copied = not data or memoryview(data).readonly
        found = function(bytes(data) if is_copied else ctypes.byref(ctypes.c_char.from_buffer(data)), len(data))
        return found.high.to_bytes(8, "big") + found.low.to_bytes(8, "big")

    return digest


class BlockWriter:
    """A file whose blocks of 256 KiB get a digest each."""

    def __init__(self, path: pathlib.Path, digest):
        self.file, self.digest = open(path, "wb", buffering=0), digest
        self.block, self.filled = bytearray(BLOCK_BYTES), 0
        self.digests = bytearray()
        self.bytes = 0

    def write(self, data) -> None:
        data = memoryview(data).cast("B")
        self.bytes += len(data)
        while data:
            if self.filled == 0 and len(data) >= BLOCK_BYTES:
                self.flush(data[:BLOCK_BYTES])
                data = data[BLOCK_BYTES:]
                continue
            taken = min(len(data), BLOCK_BYTES - self.filled)
            self.block[self.filled:self.filled + taken] = data[:taken]
            self.filled += taken
            data = data[taken:]
            if self.filled == BLOCK_BYTES:
                self.filled = 0
                self.flush(memoryview(self.block))

    def flush(self, block: memoryview) -> None:
        self.digests += self.digest(block)
        while block:
            block = block[self.file.write(block):]

    def finish(self) -> None:
        if self.filled:
            self.flush(memoryview(self.block)[:self.filled])
        os.fsync(self.file.fileno())
        self.file.close()


def header_of(tensors: list[tuple[str, str, tuple[int, ...]]]) -> bytes:
    """Returns the header of a safetensors file of flat tensors: name, type and shape of each, in the order of their data."""
    entries: dict[str, dict] = {"__metadata__": {}}
    begin = 0
    for name, dtype, shape in tensors:
        count = math.prod(shape)
        end = begin + count * ITEM_BYTES[dtype]
        entries["__metadata__"][f"elements of {name}"] = f"[0, {count}) of {list(shape)}"
        entries[name] = {"dtype": TYPES[dtype][1], "shape": [count], "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def manifest_text(body: dict, digest) -> bytes:
    """Returns a manifest: the digest of all after the first line, and the members."""
    rest = json.dumps(body, indent=1, sort_keys=True).encode()[2:] + b"\n"
    return b'{"digest":"' + digest(rest).hex().encode() + b'",\n' + rest


def write_durably(path: pathlib.Path, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


class Folder:
    """DIR, while it is DIR.partial. As a context: what is not finished is removed."""

    def __init__(self, path: pathlib.Path):
        self.path, self.partial = path, path.with_name(path.name + ".partial")
        if os.path.lexists(path):
            raise Failure(f"{path} exists; remove it, or name another -o")
        try:
            self.partial.mkdir(parents=True)
        except FileExistsError:
            pass
        self.lock = os.open(self.partial, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Failure(f"another process writes {self.partial}; wait for it, or name another -o") from None
        others = sorted(own.name for own in self.partial.iterdir() if own.name not in (TENSORS, BLOCKS, MANIFEST) and own.suffix not in (".distcp", ".metadata")
                        and own.name not in (".metadata", ".metadata.tmp"))
        if others:
            raise Failure(f"{self.partial} has {others[0]}, so this program did not make it; remove it, or name another -o")
        # What an import that was killed has left.
        for own in self.partial.iterdir():
            own.unlink()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            shutil.rmtree(self.partial, ignore_errors=True)
        os.close(self.lock)

    def finish(self) -> None:
        os.fsync(self.lock)
        os.rename(self.partial, self.path)
        parent = os.open(self.path.parent, os.O_RDONLY)
        os.fsync(parent)
        os.close(parent)
