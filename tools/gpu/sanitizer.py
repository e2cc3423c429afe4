"""The row of test.py that looks for bad accesses and races in kernels, by compute-sanitizer."""

import concurrent.futures
import re
import shutil

from bench import Bench, Failure, Result, judged, metrics_of

# A race is looked for in our kernels alone: those of cuDNN and cuBLASLt order their accesses in ways that the tool does not know.
TOOLS = {
    "memcheck": (["--tool", "memcheck", "--report-api-errors", "no"], r"ERROR SUMMARY: (\d+) error"),
    "racecheck": (["--tool", "racecheck", "--kernel-name", "kns=shardc"], r"RACECHECK SUMMARY: (\d+) hazard"),
}


def sanitizer(bench: Bench, limit_s: float):
    program = shutil.which("compute-sanitizer", path=f"{bench.environment.get('PATH', '')}:/usr/local/cuda/bin")
    if program is None:
        yield Result("sanitizer", "", "not run", "not possible here: no compute-sanitizer")
        return
    with concurrent.futures.ThreadPoolExecutor() as pool:
        tasks = {(tool, compute): pool.submit(reports, bench, program, tool, compute, limit_s) for tool in TOOLS for compute in ("fp32", "bf16")}
        for (tool, compute), task in tasks.items():
            yield task.result()


def reports(bench: Bench, program: str, tool: str, compute: str, limit_s: float) -> Result:
    """Returns what the tool says of two steps of two blocks."""
    name, (options, summary) = f"sanitizer-{tool}-{compute}", TOOLS[tool]
    run_dir = bench.scratch / name
    command = bench.command(["tests/gpu/tiny.toml", "run.device=cuda", f"precision.compute={compute}", "train.steps=2"], run_dir)
    what, why = f"{tool} of 2 blocks in {compute}, 2 steps", "it printed no summary"
    try:
        # The tool patches each kernel that is loaded, so those alone that run.
        text = bench.run([program, *options, "--target-processes", "all", *command], limit_s, name, CUDA_MODULE_LOADING="LAZY")
    except Failure as failure:
        text, why = failure.log, str(failure)
        (bench.out / f"{name}.log").write_text(f"{failure}\n{text}")
    found, steps = re.search(summary, text), len([line for line in metrics_of(run_dir) if "loss" in line])
    # A fault of the tool itself: racecheck has one with products of cuBLASLt in bf16, in which memcheck finds nothing.
    if found is None or (found[1] == "0" and steps < 2) or "Internal Sanitizer Error" in text:
        return Result("sanitizer", what, "not run", f"not possible here: {refusal(text) or why}")
    return judged("sanitizer", what, found[1] == "0", f"{found[1]} reports in {steps} steps")


def refusal(text: str) -> str:
    """Returns the first line in which the tool says that something is wrong with its use, the machine or the program."""
    found = re.search(r"^=+ *(?:Error|Warning|Internal).*$", text, re.MULTILINE | re.IGNORECASE)
    return found[0].strip("= ").replace("|", "/") if found else ""
