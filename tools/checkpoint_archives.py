"""Reads what torch.save and torch.distributed.checkpoint (DCP) pickled, without running anything that a file names.

A pickle names classes and functions, and loading it calls them. The readers here know a table of names, and have a stand-in of
their own for each; any other name is refused before anything is made of it. Tensors are not loaded: a `Stored` says where their bytes
lie, and reads them into memory that the caller has.
"""

import array
import collections
import dataclasses
import io
import os
import pickle
import struct
import zipfile
import zlib

from failure import Failure

LOCAL_HEADER = struct.Struct("<4s22xHH")
# Bytes that one read of a tensor with gaps takes.
MOST_AT_ONCE = 8 << 20
ITEM_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1,
              "uint16": 2, "uint32": 4, "uint64": 8, "float8_e4m3fn": 1, "float8_e5m2": 1, "complex64": 8, "complex128": 16}
STORAGES = {"Double": "float64", "Float": "float32", "BFloat16": "bfloat16", "Half": "float16", "Long": "int64", "Int": "int32", "Short": "int16",
            "Char": "int8", "Byte": "uint8", "Bool": "bool"}
FORMATS = {1: "B", 2: "H", 4: "I", 8: "Q"}


class Record:
    """An object of a class that DCP has: its attributes alone."""

    def __init__(self, *values):
        self.values = values

    def __setstate__(self, state):
        if isinstance(state, dict):
            self.__dict__.update(state)
        else:
            self.values = state


class Index(Record):
    """The name of a chunk: a name and an offset."""

    def key(self) -> tuple:
        return self.__dict__.get("fqn"), self.__dict__.get("offset")

    def __eq__(self, other):
        return isinstance(other, Index) and self.key() == other.key()

    def __hash__(self):
        return hash(self.key())


class BytesMetadata(Record):
    """The mark of an object that is no tensor."""


@dataclasses.dataclass
class Storage:
    dtype: str
    key: str


@dataclasses.dataclass
class Rebuilt:
    """A tensor as a pickle describes it."""
    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def attribute(_owner, name):
    """Stands for getattr, with which some versions of Python pickle a member of an enum."""
    return name


def path_text(*parts) -> str:
    return "/".join(map(str, parts))


def size_of(values=()) -> tuple:
    return tuple(values)


def rebuild_tensor(storage, offset, shape, strides, *_):
    return Rebuilt(storage, offset, tuple(shape), tuple(strides))


def rebuild_parameter(data, *_):
    return data


METADATA = "torch.distributed.checkpoint.metadata."
COMMON = {"collections.OrderedDict": collections.OrderedDict, "torch.Size": size_of, "torch.device": path_text,
          "torch.serialization._get_layout": path_text, **{f"torch.{name}": name for name in ITEM_BYTES}}
IN_METADATA = COMMON | {
    **{METADATA + name: Record for name in ("Metadata", "TensorStorageMetadata", "TensorProperties", "ChunkStorageMetadata", "StorageMeta",
                                            "_MEM_FORMAT_ENCODING")},
    METADATA + "BytesStorageMetadata": BytesMetadata, METADATA + "MetadataIndex": Index,
    "torch.distributed.checkpoint.filesystem._StorageInfo": Record,
    **{f"{module}.{name}": path_text for module in ("pathlib", "pathlib._local")
       for name in ("PosixPath", "PurePosixPath", "WindowsPath", "PureWindowsPath")},
    "builtins.getattr": attribute, "builtins.set": set}
IN_ARCHIVE = COMMON | {
    "torch._utils._rebuild_tensor_v2": rebuild_tensor, "torch._utils._rebuild_parameter": rebuild_parameter, "builtins.set": set,
    **{f"torch.{name}Storage": Storage(dtype, "") for name, dtype in STORAGES.items()}}


class Unpickler(pickle.Unpickler):
    """Makes what a pickle describes of names in a table alone."""

    def __init__(self, file, origin: str, known: dict, advice: str):
        super().__init__(file, encoding="utf-8")
        self.origin, self.known, self.advice = origin, known, advice

    def find_class(self, module, name):
        full = f"{module}.{name}"
        if full not in self.known:
            raise Failure(f"{self.origin} has an object of {full}, which is not read, as that could run code; {self.advice}")
        return self.known[full]

    def persistent_load(self, pid):
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage" or not isinstance(pid[1], Storage):
            raise Failure(f"{self.origin} refers to something that is not in it; {self.advice}")
        return Storage(pid[1].dtype, str(pid[2]))


def unpickle(data: bytes, origin: str, known: dict, advice: str):
    try:
        return Unpickler(io.BytesIO(data), origin, known, advice).load()
    except Failure:
        raise
    except Exception as error:
        raise Failure(f"{origin} is damaged: {type(error).__name__}: {error}; take another copy of it") from None


class View(io.RawIOBase):
    """Bytes [begin, begin + size) of an open file, as a file."""

    def __init__(self, descriptor: int, begin: int, size: int):
        self.descriptor, self.begin, self.size, self.position = descriptor, begin, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self.position = max(0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self.position, os.SEEK_END: self.size}[whence])
        return self.position

    def tell(self) -> int:
        return self.position

    def readinto(self, buffer) -> int:
        wanted = max(0, min(len(buffer), self.size - self.position))
        data = os.pread(self.descriptor, wanted, self.begin + self.position)
        buffer[:len(data)] = data
        self.position += len(data)
        return len(data)


def read_into(descriptor: int, to: memoryview, offset: int, origin: str) -> None:
    while to:
        count = os.preadv(descriptor, [to[:1 << 30]], offset)
        if count == 0:
            raise Failure(f"{origin} ends before its tensors do; take another copy of it")
        to, offset = to[count:], offset + count


def check_crc(data, crc: int, origin: str) -> None:
    """Compares bytes with the CRC-32 of their archive. torch.serialization.set_crc32_options(False) writes 0."""
    if crc and zlib.crc32(data) != crc:
        raise Failure(f"{origin} is damaged: its bytes have another CRC-32 than torch.save wrote; take another copy of it")


@dataclasses.dataclass
class Stored:
    """A tensor in an archive of torch.save."""
    descriptor: int
    origin: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    # Where its first element is in the file.
    begin: int
    # The CRC-32 of its bytes if it is all of its storage; 0 if nothing says it.
    crc: int = 0

    def size(self) -> int:
        count = 1
        for dim in self.shape:
            count *= dim
        return count

    def has_gaps(self) -> bool:
        """Returns true if its elements do not lie in order, one after another."""
        stride = 1
        for dim, own in zip(reversed(self.shape), reversed(self.strides)):
            if dim != 1 and own != stride:
                return True
            stride *= dim
        return False

    def read(self, to: memoryview) -> None:
        """Fills `to`, which has as many bytes as the tensor, with its elements in order."""
        item = ITEM_BYTES[self.dtype]
        if self.size() == 0:
            return
        if not self.has_gaps():
            read_into(self.descriptor, to, self.begin, self.origin)
            check_crc(to, self.crc, self.origin)
            return
        rows = self.size() // self.shape[-1] if self.shape else 1
        columns, stride = self.shape[-1], self.strides[-1]
        span = ((columns - 1) * stride + 1) * item
        spans = bytearray(max(span, min(MOST_AT_ONCE, self.last_byte())))
        held = range(0)
        for row in range(rows):
            first = item * self.offset_of(row)
            if first < held.start or first + span > held.stop:
                count = min(len(spans), self.last_byte() - first)
                read_into(self.descriptor, memoryview(spans)[:count], self.begin + first, self.origin)
                held = range(first, first + count)
            here = memoryview(spans)[first - held.start:][:span].cast(FORMATS[item])
            to[row * columns * item:(row + 1) * columns * item] = (here[::stride] if stride else array.array(FORMATS[item], [here[0]] * columns)).tobytes()

    def last_byte(self) -> int:
        """Returns how many bytes lie from the first element to the end of the last."""
        return ITEM_BYTES[self.dtype] * (1 + sum((dim - 1) * stride for dim, stride in zip(self.shape, self.strides)))

    def offset_of(self, row: int) -> int:
        """Returns where a row of the last dim begins, in elements."""
        offset = 0
        for dim, stride in zip(reversed(self.shape[:-1]), reversed(self.strides[:-1])):
            offset += row % dim * stride
            row //= dim
        return offset


class Archive:
    """A zip file of torch.save, whole or within another file."""

    def __init__(self, descriptor: int, begin: int, size: int, origin: str, advice: str):
        self.descriptor, self.begin, self.size, self.origin, self.advice = descriptor, begin, size, origin, advice
        try:
            self.zip = zipfile.ZipFile(io.BufferedReader(View(descriptor, begin, size)))
            pickles = [name for name in self.zip.namelist() if name.endswith("/data.pkl")]
            self.prefix = pickles[0].removesuffix("data.pkl")
            data = self.read_small(pickles[0])
            order = self.prefix + "byteorder"
            is_little = order not in self.zip.namelist() or self.read_small(order) == b"little"
        except (zipfile.BadZipFile, zlib.error, IndexError, KeyError, EOFError, NotImplementedError, OSError, RuntimeError, ValueError, struct.error) as error:
            raise Failure(f"{origin} is no file of torch.save, or damaged ({error}); take another copy of it. Files from before PyTorch 1.6 "
                          "have to be loaded and saved by a newer one") from None
        if not is_little:
            raise Failure(f"{origin} was written by a big-endian machine; save it again on a little-endian one")
        self.root = unpickle(data, origin, IN_ARCHIVE, advice)

    def read_small(self, name: str) -> bytes:
        """Returns a file of the archive."""
        begin, size, crc = self.place_of(name)
        data = bytearray(min(size, self.size))
        read_into(self.descriptor, memoryview(data), begin, self.origin)
        check_crc(data, crc, self.origin)
        return bytes(data)

    def place_of(self, name: str) -> tuple[int, int, int]:
        """Returns where the bytes of a file of the archive begin, how many there are, and their CRC-32."""
        try:
            info = self.zip.getinfo(name)
        except KeyError:
            raise Failure(f"{self.origin} lacks {name}, the bytes of a tensor; take another copy of it") from None
        if info.compress_type != zipfile.ZIP_STORED:
            raise Failure(f"{self.origin} is packed; save it by torch.save")
        header = os.pread(self.descriptor, LOCAL_HEADER.size, self.begin + info.header_offset)
        magic, length, extra = LOCAL_HEADER.unpack_from(header) if len(header) >= LOCAL_HEADER.size else (b"", 0, 0)
        if magic != b"PK\x03\x04":
            raise Failure(f"{self.origin} is damaged: no storage begins where its directory says; take another copy of it")
        return self.begin + info.header_offset + LOCAL_HEADER.size + length + extra, info.file_size, info.CRC

    def stored(self, tensor: Rebuilt) -> Stored:
        begin, size, crc = self.place_of(f"{self.prefix}data/{tensor.storage.key}")
        item = ITEM_BYTES[tensor.storage.dtype]
        found = Stored(self.descriptor, self.origin, tensor.storage.dtype, tensor.shape, tensor.strides, begin + item * tensor.offset)
        if len(tensor.shape) != len(tensor.strides) or min((*tensor.shape, *tensor.strides, tensor.offset), default=0) < 0 or \
                found.size() and item * tensor.offset + found.last_byte() > size:
            raise Failure(f"{self.origin} is damaged: a tensor lies outside of its storage; take another copy of it")
        if tensor.offset == 0 and found.size() * item == size:
            found.crc = crc
        return found
