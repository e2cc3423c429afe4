"""What a GPU is and how fast it is, through its driver and CUDA's libraries: no program of this project is asked.

Usage: card.py   prints one line of JSON: card, driver, versions of libraries, free memory, bandwidth of a copy, rate of a product
"""

import ctypes
import json
import random
import sys

COPY_BYTES = 4 << 30
PRODUCT = 8192


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Nvml:
    """The driver's own library, which needs no context on the card."""

    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.check(self.library.nvmlInit_v2())
        self.device = ctypes.c_void_p()
        self.check(self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)))

    @staticmethod
    def check(code: int) -> None:
        if code != 0:
            raise OSError(f"NVML gave {code}")

    def memory(self) -> Memory:
        memory = Memory()
        self.check(self.library.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(memory)))
        return memory

    def text(self, function: str, *arguments) -> str:
        buffer = ctypes.create_string_buffer(96)
        self.check(getattr(self.library, function)(*arguments, buffer, len(buffer)))
        return buffer.value.decode()


class MemoryWatch:
    """The name of the card, and how much of its memory is in use beyond what was when the watch was made; empty and 0 without a card."""

    def __init__(self):
        try:
            self.nvml = Nvml()
            self.before = self.nvml.memory().used
        except OSError:
            self.nvml = None

    def bytes(self) -> int:
        return 0 if self.nvml is None else self.nvml.memory().used - self.before

    def card(self) -> str:
        return "" if self.nvml is None else self.nvml.text("nvmlDeviceGetName", self.nvml.device)


class Runtime:
    """CUDA's runtime: memory, and times between events."""

    def __init__(self):
        self.library = ctypes.CDLL("libcudart.so.13")

    def __getattr__(self, name: str):
        function = getattr(self.library, name)

        def checked(*arguments):
            code = function(*arguments)
            if code != 0:
                raise OSError(f"{name} gave {code}")

        return checked

    def allocate(self, size: int) -> ctypes.c_void_p:
        pointer = ctypes.c_void_p()
        self.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size))
        return pointer

    def median_ms(self, run, repeats: int) -> float:
        """Of a call that enqueues on the default stream."""
        first, last, times = ctypes.c_void_p(), ctypes.c_void_p(), []
        self.cudaEventCreate(ctypes.byref(first))
        self.cudaEventCreate(ctypes.byref(last))
        for _ in range(repeats + 2):
            self.cudaEventRecord(first, None)
            run()
            self.cudaEventRecord(last, None)
            self.cudaEventSynchronize(last)
            elapsed = ctypes.c_float()
            self.cudaEventElapsedTime(ctypes.byref(elapsed), first, last)
            times.append(elapsed.value)
        return sorted(times[2:])[repeats // 2]


def copy_tb_s(cuda: Runtime) -> float:
    """Bytes read and written."""
    size = ctypes.c_size_t(COPY_BYTES)
    source, target = cuda.allocate(COPY_BYTES), cuda.allocate(COPY_BYTES)
    ms = cuda.median_ms(lambda: cuda.cudaMemcpyAsync(target, source, size, 3, None), 5)
    cuda.cudaFree(source)
    cuda.cudaFree(target)
    return 2 * COPY_BYTES / ms / 1e9


def product_tf_s(cuda: Runtime) -> float:
    """Of bf16 numbers between 0.5 and 2 of either sign: the card's clock depends on the bits."""
    blas = ctypes.CDLL("libcublas.so.13")
    handle = ctypes.c_void_p()
    if code := blas.cublasCreate_v2(ctypes.byref(handle)):
        raise OSError(f"cublasCreate gave {code}")
    generator = random.Random(1)
    numbers = bytes(byte for _ in range(1 << 17) for byte in (generator.randrange(256), generator.choice((0x3F, 0xBF))))
    size = 2 * PRODUCT * PRODUCT
    a, b, c = (cuda.allocate(size) for _ in range(3))
    for operand in (a, b):
        for offset in range(0, size, len(numbers)):
            cuda.cudaMemcpy(ctypes.c_void_p(operand.value + offset), numbers, ctypes.c_size_t(len(numbers)), 1)
    one, zero = ctypes.c_float(1), ctypes.c_float(0)
    n, bf16, f32 = ctypes.c_int(PRODUCT), 14, 68

    def multiply() -> None:
        code = blas.cublasGemmEx(handle, 1, 0, n, n, n, ctypes.byref(one), a, bf16, n, b, bf16, n, ctypes.byref(zero), c, bf16, n, f32, -1)
        if code:
            raise OSError(f"cublasGemmEx gave {code}")

    return 2 * PRODUCT**3 / cuda.median_ms(multiply, 20) / 1e9


def versions(cuda: Runtime) -> dict[str, str]:
    number = ctypes.c_int()
    cuda.cudaRuntimeGetVersion(ctypes.byref(number))
    found = {"cudart": f"{number.value // 1000}.{number.value % 1000 // 10}"}
    for name, file, function in (("cublasLt", "libcublasLt.so.13", "cublasLtGetVersion"), ("cudnn", "libcudnn.so.9", "cudnnGetVersion")):
        library = ctypes.CDLL(file)
        getattr(library, function).restype = ctypes.c_size_t
        version = getattr(library, function)()
        found[name] = f"{version // 10000}.{version % 10000 // 100}.{version % 100}"
    return found


def main() -> None:
    nvml, cuda = Nvml(), Runtime()
    report = {
        "card": nvml.text("nvmlDeviceGetName", nvml.device),
        "driver": nvml.text("nvmlSystemGetDriverVersion"),
        "free_bytes": nvml.memory().free,
        "libraries": versions(cuda),
        "copy_tb_s": copy_tb_s(cuda),
        "product_tf_s": product_tf_s(cuda),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"error: {error}")
