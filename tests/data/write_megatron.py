"""Writes an indexed dataset as Megatron-LM does (megatron/core/datasets/indexed_dataset.py, _IndexWriter): by the description of
the format, and without anything of this project.

    write_megatron.py PREFIX TYPE DOCUMENT...    a DOCUMENT is sequences joined by "/", a sequence is ids joined by ","

TYPE is uint8, int16, int32, int64 or uint16. Prints the ids of PREFIX.bin, in the order of the documents.
"""

import struct
import sys

CODES = {"uint8": (1, "B"), "int16": (3, "h"), "int32": (4, "i"), "int64": (5, "q"), "uint16": (8, "H")}


def main():
    prefix, type_name, *documents = sys.argv[1:]
    code, letter = CODES[type_name]
    size = struct.calcsize("<" + letter)
    lengths, pointers, firsts, ids = [], [], [0], []
    for document in documents:
        for sequence in document.split("/"):
            numbers = [int(number) for number in sequence.split(",") if number]
            pointers.append(len(ids) * size)
            lengths.append(len(numbers))
            ids += numbers
        firsts.append(len(lengths))
    with open(prefix + ".bin", "wb") as file:
        file.write(struct.pack(f"<{len(ids)}{letter}", *ids))
    with open(prefix + ".idx", "wb") as file:
        file.write(b"MMIDIDX\x00\x00")
        file.write(struct.pack("<Q", 1))
        file.write(struct.pack("<B", code))
        file.write(struct.pack("<Q", len(lengths)))
        file.write(struct.pack("<Q", len(firsts)))
        file.write(struct.pack(f"<{len(lengths)}i", *lengths))
        file.write(struct.pack(f"<{len(pointers)}q", *pointers))
        file.write(struct.pack(f"<{len(firsts)}q", *firsts))
    print(" ".join(str(number) for number in ids))


main()
