"""Writes the files that PyTorch writes, without PyTorch, for import_checkpoint_test.py: zips of torch.save, and folders of DCP.

Pickles name classes of torch by modules of these names that are made here. Nothing else is in those modules.
"""

import collections
import dataclasses
import io
import pathlib
import pickle
import struct
import sys
import types
import zipfile

METADATA = "torch.distributed.checkpoint.metadata"


def named(module: str, name: str, made):
    """Returns an object that pickles as `module.name`."""
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:count]), types.ModuleType(".".join(parts[:count])))
    made.__module__, made.__qualname__, made.__name__ = module, name, name
    setattr(sys.modules[module], name, made)
    return made


def record(module: str, name: str):
    return named(module, name, type(name, (), {"__init__": lambda self, **attributes: self.__dict__.update(attributes)}))


def make_dtype(name: str):
    # A dtype pickles as a name in the module torch.
    made = type(name, (), {})
    return named("torch", name, made)


DTYPES = {name: make_dtype(name) for name in ("float32", "bfloat16", "int64", "float64")}
STORAGES = {dtype: named("torch", f"{name}Storage", type(name, (), {}))
            for dtype, name in {"float32": "Float", "bfloat16": "BFloat16", "int64": "Long", "float64": "Double"}.items()}
Size = named("torch", "Size", type("Size", (tuple,), {"__reduce__": lambda self: (Size, (tuple(self),))}))
rebuild = named("torch._utils", "_rebuild_tensor_v2", lambda *_: None)
layout = named("torch.serialization", "_get_layout", lambda *_: None)
Metadata, TensorStorage, Properties, ChunkStorage, Bytes, Index = (
    record(METADATA, name) for name in ("Metadata", "TensorStorageMetadata", "TensorProperties", "ChunkStorageMetadata", "BytesStorageMetadata", "MetadataIndex"))
Properties.__getstate__ = lambda self: self.state
StorageInfo = record("torch.distributed.checkpoint.filesystem", "_StorageInfo")


class Tensor:
    """Elements of a storage, which several tensors may share."""

    def __init__(self, dtype: str, shape, storage, offset=0, strides=None):
        self.dtype, self.shape, self.storage, self.offset = dtype, tuple(shape), storage, offset
        size = 1
        usual = []
        for dim in reversed(self.shape):
            usual.insert(0, size)
            size *= dim
        self.strides = tuple(strides or usual)

    def __reduce_ex__(self, _protocol):
        return rebuild, (Storage(self.dtype, self.storage), self.offset, self.shape, self.strides, False, collections.OrderedDict())


class Storage:
    def __init__(self, dtype: str, data: bytes):
        self.dtype, self.data = dtype, data


class Pickler(pickle.Pickler):
    def __init__(self, file, storages: list):
        super().__init__(file, protocol=2)
        self.storages = storages

    def persistent_id(self, value):
        if not isinstance(value, Storage):
            return None
        found = [key for key, data in enumerate(self.storages) if data is value.data]
        if not found:
            self.storages.append(value.data)
        return "storage", STORAGES[value.dtype], str(found[0] if found else len(self.storages) - 1), "cpu", len(value.data)


@dataclasses.dataclass
class Raw:
    """A pickle in place of that of a value."""
    data: bytes


def save(value) -> bytes:
    """Returns what torch.save writes."""
    storages: list[bytes] = []
    data, out = io.BytesIO(), io.BytesIO()
    if isinstance(value, Raw):
        data.write(value.data)
    else:
        Pickler(data, storages).dump(value)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", data.getvalue())
        archive.writestr("archive/byteorder", "little")
        for key, storage in enumerate(storages):
            archive.writestr(f"archive/data/{key}", storage)
    return out.getvalue()


def floats(values) -> bytes:
    values = list(values)
    return struct.pack(f"<{len(values)}f", *values)


def save_dcp(folder: pathlib.Path, tensors: dict, objects: dict, ranks: int = 2) -> None:
    """Writes a folder of DCP: rows of each float32 tensor, given as shape and values, are cut over ranks as FSDP2 does."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [bytearray() for _ in range(ranks)]
    state, places = {}, {}

    def put(rank: int, name: str, offset, value) -> None:
        data = save(value)
        info = StorageInfo(relative_path=f"__{rank}_0.distcp", offset=len(files[rank]), length=len(data))
        places[Index(fqn=name, **({} if offset is None else {"offset": Size(offset), "index": rank}))] = info
        files[rank] += data

    for name, (shape, values) in tensors.items():
        rows = shape[0] if shape else 1
        width = len(values) // max(rows, 1)
        each = -(-rows // ranks) if shape else 1
        chunks = []
        for rank in range(ranks if shape else 1):
            begin, end = min(rank * each, rows), min((rank + 1) * each, rows)
            offsets, sizes = ((begin, *[0] * (len(shape) - 1)), (end - begin, *shape[1:])) if shape else ((), ())
            chunks.append(ChunkStorage(offsets=Size(offsets), sizes=Size(sizes)))
            put(rank, name, offsets, Tensor("float32", sizes, floats(values[begin * width:end * width])))
        properties = Properties(state=(DTYPES["float32"], None, False, None, False))
        state[name] = TensorStorage(properties=properties, size=Size(shape), chunks=chunks)
    for name, value in objects.items():
        state[name] = Bytes()
        put(0, name, None, value)
    for rank, data in enumerate(files):
        (folder / f"__{rank}_0.distcp").write_bytes(data)
    metadata = Metadata(state_dict_metadata=state, planner_data={name: (name,) for name in state}, storage_data=places)
    (folder / ".metadata").write_bytes(pickle.dumps(metadata, protocol=4))
