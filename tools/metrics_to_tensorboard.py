"""Writes metrics.jsonl of a run as TensorBoard events: metrics_to_tensorboard.py RUN_FOLDER LOG_FOLDER. Needs Python alone."""
import datetime, json, pathlib, struct, sys

def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF

def masked(data: bytes) -> bytes:  # The check sum of a TFRecord.
    return struct.pack("<I", (((crc := crc32c(data)) >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

def varint(n: int) -> bytes:
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)

def event(line: dict) -> bytes:  # The protobuf Event: wall_time = 1, step = 2, summary = 5, of values with tag = 1, simple_value = 2.
    numbers = [(name.encode(), value) for name, value in line.items() if isinstance(value, (int, float)) and name != "step"]
    values = [b"\x0a" + varint(len(tag)) + tag + b"\x15" + struct.pack("<f", value) for tag, value in numbers]
    summary = b"".join(b"\x0a" + varint(len(value)) + value for value in values)
    time = datetime.datetime.fromisoformat(line.get("time", "1970-01-01T00:00:00Z").replace("Z", "+00:00")).timestamp()
    return b"\x09" + struct.pack("<d", time) + b"\x10" + varint(line["step"]) + b"\x2a" + varint(len(summary)) + summary

if __name__ == "__main__":
    if len(sys.argv) != 3 or not (pathlib.Path(sys.argv[1]) / "metrics.jsonl").is_file():
        sys.exit("usage: metrics_to_tensorboard.py RUN_FOLDER LOG_FOLDER; RUN_FOLDER is that of a run, with its metrics.jsonl")
    pathlib.Path(sys.argv[2]).mkdir(parents=True, exist_ok=True)
    with open(pathlib.Path(sys.argv[2]) / "events.out.tfevents.0.shardc", "wb") as out:
        for data in [b"\x1a\x0dbrain.Event:2"] + [event(json.loads(text)) for text in open(pathlib.Path(sys.argv[1]) / "metrics.jsonl")]:
            out.write((size := struct.pack("<Q", len(data))) + masked(size) + data + masked(data))
