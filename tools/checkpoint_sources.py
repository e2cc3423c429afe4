"""Where tensors of PyTorch come from: a folder that torch.distributed.checkpoint (DCP) wrote, or a file of torch.save.

A source has `tensors` by name, and the names of its `objects`, which are no tensors. Names are the keys on the way to a tensor,
joined by dots, as DCP has them. A tensor is read when it is wanted, box by box into memory that the caller has.
"""

import dataclasses
import json
import os
import pathlib

from checkpoint_archives import IN_METADATA, ITEM_BYTES, Archive, BytesMetadata, Rebuilt, Stored, unpickle
from failure import Failure

FLAT = "_flat_param"
ABOUT_FILE = 'save tensors, numbers and texts alone: torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, FILE)'
ABOUT_METADATA = "write the checkpoint by torch.distributed.checkpoint.save with its own writer and planner"
ABOUT_FLAT = ("its tensors are those of FSDP1's flat parameters, which do not say which parameters they hold; load the checkpoint there, and "
              "save it with torch.distributed.checkpoint.state_dict.get_state_dict(model, optimizer)")
MOST_HEADER = 100 << 20


@dataclasses.dataclass
class Chunk:
    """A box of a tensor: where it begins, its sizes, and where its bytes are."""
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    file: str
    begin: int
    bytes: int


def product(sizes) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count


class DcpTensor:
    def __init__(self, source: "Dcp", name: str, dtype: str, shape: tuple[int, ...], chunks: list[Chunk]):
        self.source, self.name, self.dtype, self.shape, self.chunks = source, name, dtype, shape, chunks

    def bytes(self) -> int:
        return product(self.shape) * ITEM_BYTES[self.dtype]

    def read(self, to: memoryview) -> None:
        """Fills `to` with the elements of the tensor, in order."""
        for chunk in self.chunks:
            if product(chunk.sizes) == 0:
                continue
            stored = self.source.stored(self.name, chunk)
            if (stored.dtype, stored.shape) != (self.dtype, chunk.sizes):
                raise Failure(f"{chunk.file} has {self.name} at {list(chunk.offsets)} as {stored.dtype}{list(stored.shape)}, and .metadata says "
                              f"{self.dtype}{list(chunk.sizes)}: they are of different saves; take another copy of the folder")
            self.place(chunk, stored, to)

    def place(self, chunk: Chunk, stored: Stored, to: memoryview) -> None:
        item = ITEM_BYTES[self.dtype]
        # The dims from here on are whole, so that what lies in them is one interval of the tensor.
        inner = len(self.shape)
        while inner > 0 and chunk.sizes[inner - 1] == self.shape[inner - 1]:
            inner -= 1
        cut = max(inner - 1, 0)
        length = product(chunk.sizes[cut:]) * item
        if product(chunk.sizes[:cut]) == 1:
            begin = item * self.position([*chunk.offsets[:cut], *chunk.offsets[cut:]])
            stored.read(to[begin:begin + length])
            return
        box = bytearray(product(chunk.sizes) * item)
        stored.read(memoryview(box))
        for row in range(product(chunk.sizes[:cut])):
            place, rest = list(chunk.offsets), row
            for dim in reversed(range(cut)):
                place[dim] += rest % chunk.sizes[dim]
                rest //= chunk.sizes[dim]
            begin = item * self.position(place)
            to[begin:begin + length] = memoryview(box)[row * length:(row + 1) * length]

    def position(self, place) -> int:
        position = 0
        for index, size in zip(place, self.shape):
            position = position * size + index
        return position


class Dcp:
    """A folder with .metadata and .distcp files."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        data = (folder / ".metadata").read_bytes()
        root = unpickle(data, str(folder / ".metadata"), IN_METADATA, ABOUT_METADATA)
        # Descriptor and size of each.
        self.files: dict[str, tuple[int, int]] = {}
        self.tensors: dict[str, DcpTensor] = {}
        self.objects: list[str] = []
        self.places: dict[str, Chunk] = {}
        self.infos: dict[str, list] = {}
        try:
            for index, info in root.storage_data.items():
                name, offset = index.key()
                self.infos.setdefault(name, []).append((offset, info))
            for name, about in root.state_dict_metadata.items():
                if isinstance(about, BytesMetadata):
                    self.objects.append(name)
                    self.places[name] = self.chunk(name, None, ())
                else:
                    self.tensors[name] = self.tensor(name, about)
        except (AttributeError, KeyError, TypeError, IndexError) as error:
            raise Failure(f"{folder}/.metadata does not say where its tensors are ({type(error).__name__}: {error}); {ABOUT_METADATA}") from None
        for name in self.tensors:
            refuse_flat(name, folder)
        # As the state was, whichever rank wrote what.
        if isinstance(order := getattr(root, "planner_data", None), dict):
            places = {name: place for place, name in enumerate(order)}
            self.tensors = dict(sorted(self.tensors.items(), key=lambda item: places.get(item[0], len(places))))

    def tensor(self, name: str, about) -> DcpTensor:
        dtype = about.properties.values[0] if about.properties.values else about.properties.dtype
        if dtype not in ITEM_BYTES:
            raise Failure(f"{name} is of a type that is not known, {dtype}; leave it out where the checkpoint is saved")
        shape = tuple(about.size)
        chunks = [self.chunk(name, tuple(own.offsets), tuple(own.sizes)) for own in about.chunks if product(own.sizes)]
        # Chunks of DCP do not overlap, so that their sizes decide.
        is_whole = sum(product(chunk.sizes) for chunk in chunks) == product(shape)
        if not is_whole or len({chunk.offsets for chunk in chunks}) != len(chunks):
            raise Failure(f"the chunks of {name} in {self.folder}/.metadata do not make up {list(shape)}; was the save finished on all ranks?")
        for chunk in chunks:
            if not len(chunk.offsets) == len(chunk.sizes) == len(shape) or any(o < 0 or o + s > d for o, s, d in zip(chunk.offsets, chunk.sizes, shape)):
                raise Failure(f"a chunk of {name} in {self.folder}/.metadata lies outside of {list(shape)}; take another copy of the folder")
        return DcpTensor(self, name, dtype, shape, chunks)

    def chunk(self, name: str, offsets, sizes) -> Chunk:
        info = next((info for offset, info in self.infos.get(name, []) if offset in (offsets, None)), None)
        if info is None:
            raise Failure(f"{self.folder}/.metadata does not say where {name} at {list(offsets or ())} is; was the save finished on all ranks?")
        if getattr(info, "transform_descriptors", None):
            raise Failure(f"{name} is packed by {', '.join(map(str, info.transform_descriptors))}; save the checkpoint without extensions")
        file = info.relative_path
        if not isinstance(file, str) or pathlib.PurePath(file).name != file:
            raise Failure(f"{self.folder}/.metadata names a file outside of its folder, {file}; take another copy of the folder")
        if file not in self.files:
            try:
                descriptor = os.open(self.folder / file, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                raise Failure(f"{self.folder / file}, which has {name}, is missing; copy it from the machine of the rank that wrote it") from None
            self.files[file] = descriptor, os.fstat(descriptor).st_size
        if info.offset < 0 or info.length < 0 or info.offset + info.length > self.files[file][1]:
            raise Failure(f"{self.folder / file} has {self.files[file][1]:,} bytes, and {name} is in [{info.offset:,}, {info.offset + info.length:,}): "
                          "the file is cut short; copy it again, or take the checkpoint before")
        return Chunk(offsets, sizes, str(self.folder / file), info.offset, info.length)

    def archive(self, chunk: Chunk, name: str) -> Archive:
        descriptor, _ = self.files[pathlib.PurePath(chunk.file).name]
        return Archive(descriptor, chunk.begin, chunk.bytes, f"{chunk.file} ({name})", ABOUT_METADATA)

    def stored(self, name: str, chunk: Chunk) -> Stored:
        archive = self.archive(chunk, name)
        if not isinstance(archive.root, Rebuilt):
            raise Failure(f"{chunk.file} has no tensor where .metadata says that {name} is; take another copy of the folder")
        return archive.stored(archive.root)

    def number(self, name: str):
        """Returns an object that is a number; null for every other one, and if there is none of this name."""
        if name not in self.places:
            return None
        try:
            root = self.archive(self.places[name], name).root
        except Failure:
            return None
        return root if isinstance(root, (int, float)) else None



class FileTensor:
    def __init__(self, stored: Stored):
        self.stored, self.dtype, self.shape = stored, stored.dtype, stored.shape

    def bytes(self) -> int:
        return self.stored.size() * ITEM_BYTES[self.dtype]

    def read(self, to: memoryview) -> None:
        self.stored.read(to)


class TorchFile:
    """A file of torch.save. Tensors may share a storage; each is read by itself."""

    def __init__(self, path: pathlib.Path):
        self.path = path
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.archive = Archive(descriptor, 0, os.fstat(descriptor).st_size, str(path), ABOUT_FILE)
        self.tensors: dict[str, FileTensor] = {}
        self.numbers: dict[str, int | float | None] = {}
        self.take((), self.archive.root)
        self.objects = list(self.numbers)

    def take(self, keys: tuple, value) -> None:
        name = ".".join(map(str, keys))
        if isinstance(value, Rebuilt):
            refuse_flat(name, self.path)
            if name in self.tensors:
                raise Failure(f"{self.path} has two tensors that are called {name}; save it with other keys")
            self.tensors[name] = FileTensor(self.archive.stored(value))
        elif isinstance(value, dict):
            for key, item in value.items():
                self.take((*keys, key), item)
        elif isinstance(value, (list, tuple)) and any(isinstance(item, (dict, list, tuple, Rebuilt)) for item in value):
            for key, item in enumerate(value):
                self.take((*keys, key), item)
        else:
            self.numbers[name] = value if isinstance(value, (int, float)) else None

    def number(self, name: str):
        return self.numbers.get(name)


def refuse_flat(name: str, path) -> None:
    if FLAT in name:
        raise Failure(f"{path} has {name}: {ABOUT_FLAT}")


SAFETENSORS_TYPES = {"F64": "float64", "F32": "float32", "BF16": "bfloat16", "F16": "float16", "I64": "int64", "I32": "int32", "I16": "int16",
                     "I8": "int8", "U8": "uint8", "BOOL": "bool"}
SHARDED = "DCP_SHARDING_INFO"


def safetensors_header(path: pathlib.Path, descriptor: int) -> tuple[dict, int]:
    """Returns the header, and where the data begin."""
    size = int.from_bytes(os.pread(descriptor, 8, 0), "little")
    try:
        header = json.loads(os.pread(descriptor, size, 8)) if size <= MOST_HEADER else None
    except ValueError:
        header = None
    if not isinstance(header, dict):
        raise Failure(f"{path} is no safetensors file, or damaged; take another copy of it")
    return header, 8 + size


class Shards:
    """Files of DCP's HuggingFaceStorageWriter: each is a safetensors file that has boxes of tensors, and says where they begin."""

    def __init__(self, folder: pathlib.Path, files: list[pathlib.Path]):
        self.objects: list[str] = []
        self.boxes: dict[tuple, Stored] = {}
        chunks: dict[str, list[Chunk]] = {}
        types: dict[str, str] = {}
        for path in files:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            header, data = safetensors_header(path, descriptor)
            try:
                infos = json.loads((header.pop("__metadata__", None) or {})[SHARDED])
                for name, about in header.items():
                    offsets, sizes, (begin, end) = tuple(infos[name]["saved_offsets"]), tuple(about["shape"]), about["data_offsets"]
                    types[name] = SAFETENSORS_TYPES[about["dtype"]]
                    if data + end > os.fstat(descriptor).st_size:
                        raise Failure(f"{path} ends before its tensors do; copy it again")
                    chunk = Chunk(offsets, sizes, str(path), data + begin, end - begin)
                    strides = tuple(product(sizes[dim + 1:]) for dim in range(len(sizes)))
                    self.boxes[name, offsets] = Stored(descriptor, str(path), types[name], sizes, strides, chunk.begin)
                    chunks.setdefault(name, []).extend([chunk] if product(sizes) else [])
            except (KeyError, TypeError, ValueError) as error:
                raise Failure(f"{path} does not say which boxes of tensors it has ({type(error).__name__}: {error}), and others in its folder do; "
                              "name a folder that has the files of one save alone") from None
        self.tensors = {name: self.tensor(folder, name, types[name], own) for name, own in chunks.items()}

    def tensor(self, folder: pathlib.Path, name: str, dtype: str, chunks: list[Chunk]) -> DcpTensor:
        refuse_flat(name, folder)
        ends = [[o + s for o, s in zip(chunk.offsets, chunk.sizes)] for chunk in chunks]
        shape = tuple(max(end) for end in zip(*ends)) if ends else (0,)
        if len({(len(chunk.offsets), len(chunk.sizes)) for chunk in chunks}) > 1 or sum(product(chunk.sizes) for chunk in chunks) != product(shape):
            raise Failure(f"the files of {folder} have parts of {name} alone; copy the files of all ranks there")
        return DcpTensor(self, name, dtype, shape, chunks)

    def stored(self, name: str, chunk: Chunk) -> Stored:
        return self.boxes[name, chunk.offsets]

    def number(self, name: str):
        return None


def open_safetensors(folder: pathlib.Path, files: list[pathlib.Path]) -> Shards:
    for path in files:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        header, _ = safetensors_header(path, descriptor)
        os.close(descriptor)
        if SHARDED in (header.get("__metadata__") or {}):
            return Shards(folder, files)
    raise Failure(f'{folder} has whole safetensors, which shardc reads itself: shardc new RECIPE --from {folder}, or first = {{ seed = "{folder}" }}. '
                  "A config.json beside them has to say which model it is")


def open_source(path: pathlib.Path):
    if not path.exists():
        raise Failure(f"{path} does not exist; name a folder of torch.distributed.checkpoint, or a file of torch.save")
    if not path.is_dir():
        if path.suffix == ".distcp" or path.name == ".metadata":
            raise Failure(f"{path} is one file of a checkpoint; name its folder, {path.parent}")
        if path.suffix == ".safetensors":
            raise Failure(f"{path} is one file of safetensors; name its folder, {path.parent}")
        return TorchFile(path)
    if (path / ".metadata").is_file():
        return Dcp(path)
    if files := sorted(path.glob("*.safetensors")):
        return open_safetensors(path, files)
    if any(path.glob("__*.metadata")):
        raise Failure(f"{path} has a .metadata of each rank (use_collectives=False), and none of all, which is not read; save it with collectives")
    if any(path.glob("*.distcp")):
        raise Failure(f"{path} has no .metadata, which DCP writes last: its save did not finish; take the checkpoint before")
    steps = sorted(own.parent for own in path.glob("*/.metadata"))
    if steps:
        raise Failure(f"{path} has no .metadata, and {steps[-1]} has; name one checkpoint")
    raise Failure(f"{path} has no .metadata, so it is no folder of torch.distributed.checkpoint; name the folder of one step, or a file of torch.save")
