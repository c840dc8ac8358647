"""What check.sh does: builds llama.cpp with the module for CUDA, compares it with stock on the card and writes OUT/gpu-cuda.json."""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import won

REPOSITORY = Path(__file__).resolve().parents[2]
STEPS = ("build", "choose", "operations", "products", "models", "off", "memory")
TYPES = ("q8_0", "q2_K", "q4_K", "q6_K")
OTHER_TYPES = ("q4_0", "q4_1", "q5_0", "q5_1", "q3_K", "q5_K", "iq4_nl", "iq4_xs")
HEADLINE = (4096, 512, 14336)  # M, N, K
CHOSEN_TYPES = {"q8_0": 8, "q2_K": 10, "q3_K": 11, "q4_K": 12, "q6_K": 14}  # ggml's numbers
CHOSEN_COLUMNS = (16, 64, 128, 256, 512, 2048)
WANTED = {"q2_K": 1.4, "q6_K": 1.25, "q4_K": 1.2, "q8_0": 1.1}
SWEEP_COLUMNS = (16, 64, 128, 256, 512, 1024, 4096)
SWEEP_PAIRS = ((4096, 4096), (14336, 4096), (4096, 14336), (1024, 4096), (8192, 8192), (28672, 8192))  # M, K of 7B to 70B models
GOLDEN = ((33, 17, 256), (64, 48, 512), (130, 9, 768))
MIXES = {"Q4_K_M": 1.15, "Q2_K": 1.35, "Q8_0": 1.1}
RUNS = 3
MEMORY_CASES = "type_a=(q4_K|q2_K|q8_0|q6_K),type_b=f32,m=16,n=(1|9|16),k=(256|1024)"
MEMORY_CASES_ID = "type_a=(q4_K|q2_K),type_b=f32,n_mats=4,n_used=2,b=0,m=512,n=(1|32),k=256"

ON = {"WAVESMITH": "1", "WAVESMITH_TAKE": "measured"}
OFF = {"WAVESMITH": "0"}
ALL = {"WAVESMITH": "1", "WAVESMITH_TAKE": "all"}


class Failure(Exception):
    pass


def run(command: list, *, log: Path | None = None, timeout: float = 300, environment: dict[str, str] | None = None, check: bool = True) -> str:
    """Standard output of a program; its standard error goes to `log`. Failure with the command if it fails."""
    try:
        done = subprocess.run([str(part) for part in command], check=False, capture_output=True, text=True, errors="replace", timeout=timeout,
                              env=os.environ | (environment or {}))  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{command[0]} took longer than {timeout:.0f} s") from error
    except OSError as error:
        raise Failure(f"{command[0]}: {error.strerror}") from error
    if log:
        log.write_text(done.stdout + done.stderr)
    if check and done.returncode:
        raise Failure(f"{' '.join(map(str, command))[:200]}: exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout


class Check:
    def __init__(self, llama: Path, out: Path) -> None:
        self.out = out
        self.work = Path(os.environ.get("TMPDIR", "/tmp")) / "wavesmith-gpu-check"
        self.llama = llama
        self.result: dict = {"evidence": "gpu", "failures": []}
        self.generating: list[threading.Thread] = []
        if (self.work / "result.json").exists():  # of steps that an earlier call has done
            self.result = json.loads((self.work / "result.json").read_text())

    @property
    def programs(self) -> Path:
        return self.work / "build" / "bin"

    def save(self) -> None:
        for folder in (self.out, self.work):
            (folder / ("gpu-cuda.json" if folder == self.out else "result.json")).write_text(json.dumps(self.result, indent=1) + "\n")

    def fail(self, text: str) -> None:
        print(f"FAILED: {text}")
        self.result["failures"].append(text)

    def build(self) -> None:
        self.result = {"evidence": "gpu", "failures": []}
        if self.llama.is_file():
            with tarfile.open(self.llama) as archive:
                archive.extractall(self.work / "source", filter="data")
            self.llama = next(path.parent for path in sorted((self.work / "source").glob("**/CMakeLists.txt"), key=lambda path: len(path.parts)))
        self.result["source"] = str(self.llama)
        self.generate_models()
        capability = run(["nvidia-smi", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"]).splitlines()[0].split(", ")
        self.result |= {"card": capability[0], "driver": capability[1], "compiler": run(["nvcc", "--version"]).strip().splitlines()[-2].strip()}
        self.result["llama_cpp_commit"] = os.environ.get("LLAMA_COMMIT", "unknown")
        self.result["module_commit"] = os.environ.get("MODULE_COMMIT", "unknown")
        configure = ["cmake", "-S", self.llama, "-B", self.work / "build", *(["-G", "Ninja"] if shutil.which("ninja") else []),
                     "-DCMAKE_BUILD_TYPE=Release", "-DGGML_CUDA=ON", f"-DCMAKE_CUDA_ARCHITECTURES={capability[2].replace('.', '')}-real",
                     "-DGGML_CUSTOM_KERNELS=wavesmith", f"-DWAVESMITH_PATH={REPOSITORY / 'backend'}", "-DGGML_CCACHE=OFF", "-DGGML_CUDA_NCCL=OFF",
                     "-DLLAMA_OPENSSL=OFF", "-DLLAMA_BUILD_UI=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF",
                     "-DLLAMA_BUILD_APP=OFF", "-DLLAMA_BUILD_SERVER=OFF", "-DLLAMA_BUILD_NUMBER=1",
                     f"-DLLAMA_BUILD_COMMIT={self.result['llama_cpp_commit']}"]  # fmt: skip
        run(configure, log=self.out / "configure.log")
        jobs = str(os.cpu_count() or 4)
        run(["cmake", "--build", self.work / "build", "-j", jobs, "--target", "test-backend-ops", "llama-bench"], log=self.out / "build.log", timeout=540)
        self.link("products.cpp", "products")

    def link(self, source: str, name: str) -> None:
        run(["g++", "-O2", "-std=c++17", f"-I{self.llama}/ggml/include", Path(__file__).with_name(source), "-o", self.programs / name,
             f"-L{self.programs}", "-lggml", "-lggml-base", f"-Wl,-rpath,{self.programs}"])  # fmt: skip

    def generate_models(self) -> None:
        """Writes the models while the compiler runs."""
        script = (
            "import sys; from pathlib import Path; from wavesmith.model_generator import Shape, generate; "
            "generate(Path(sys.argv[1]), Shape(4096, 14336, 32, 32, 8, 128256, context_length=8192, rope_base=500000.0), sys.argv[2])"
        )
        paths = {"PYTHONPATH": f"{REPOSITORY / 'tools'}:{self.llama / 'gguf-py'}"}

        def generate(mix: str) -> None:
            try:
                run([sys.executable, "-c", script, self.model(mix), mix], environment=paths, timeout=500, log=self.out / f"model-{mix}.log")
            except Failure as error:
                self.fail(f"model {mix}: {error}")

        self.generating = [threading.Thread(target=generate, args=(mix,)) for mix in MIXES]
        for thread in self.generating:
            thread.start()

    def wait_for_models(self) -> None:
        for thread in self.generating:
            thread.join()

    def model(self, mix: str) -> Path:
        return self.work / f"llama3-8b-{mix}.gguf"

    # steps

    def choose(self) -> None:
        """Times what the kernels support, keeps where they won as plan data, and builds the module with that."""
        cases = [f"{kind}:{m}:{n}:{k}" for kind in CHOSEN_TYPES for m, k in SWEEP_PAIRS for n in CHOSEN_COLUMNS]
        stock, ours = (self.timed(cases, environment, "choose") for environment in (OFF, ALL))
        rows = [{**one, "stock_us": one["us"], "ours_us": two["us"], "ratio": round(one["us"] / two["us"], 3)} for one, two in zip(stock, ours, strict=True)]
        self.result["every_product"] = [{key: value for key, value in row.items() if key != "us"} for row in rows]
        text = won.table(rows, CHOSEN_TYPES, self.result["card"])
        (self.out / "mmq_won.inc").write_text(text)
        (REPOSITORY / "backend/plan/mmq_won.inc").write_text(text)
        print(text)
        jobs = str(os.cpu_count() or 4)
        run(["cmake", "--build", self.work / "build", "-j", jobs, "--target", "test-backend-ops", "llama-bench"], log=self.out / "rebuild.log", timeout=120)

    def operations(self) -> None:
        """ggml's own tests, with every product that the kernels support taken."""
        self.result["backend_ops"] = {}
        for op in ("MUL_MAT", "MUL_MAT_ID"):
            ledger = self.out / f"ledger-{op}.jsonl"
            text = run([self.programs / "test-backend-ops", "test", "-b", "CUDA0", "-o", op], environment=ALL | {"WAVESMITH_LEDGER": str(ledger)},
                       log=self.out / f"{op}.log", timeout=150, check=False)  # fmt: skip
            found = re.search(r"(\d+)/(\d+) tests passed", text)
            if not found:
                self.fail(f"{op}: no result")
                continue
            passed, total = int(found[1]), int(found[2])
            taken = sum(line["count"] for line in map(json.loads, ledger.read_text().splitlines()) if line["ran"] == "wavesmith")
            self.result["backend_ops"][op] = {"passed": passed, "failed": total - passed, "taken": taken}
            print(f"{op}: {passed}/{total} passed, {taken} by the module")
            if passed != total or taken < 200:
                self.fail(f"{op}: {passed}/{total} passed, {taken} by the module")

    def timed(self, cases: list[str], environment: dict[str, str], folder: str) -> list[dict]:
        target = self.work / folder
        target.mkdir(exist_ok=True)
        text = run([self.programs / "products", "CUDA0", target, *cases], environment=environment, timeout=200)
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def write_inputs(self) -> None:
        """Inputs of the small products, which a seed makes again anywhere."""
        sys.path.insert(0, str(self.llama / "gguf-py"))
        import golden_inputs

        folder = self.work / "inputs"
        folder.mkdir(exist_ok=True)
        for kind in (*TYPES, *OTHER_TYPES):
            for m, n, k in GOLDEN:
                weights, activations = golden_inputs.inputs(kind, m, n, k)
                (folder / f"{kind}-{m}-{n}-{k}.w").write_bytes(weights.tobytes())
                (folder / f"{kind}-{m}-{n}-{k}.x").write_bytes(activations.tobytes())

    def products(self) -> None:
        """Time and outputs of single products, stock and ours in turn."""
        import numpy as np

        self.write_inputs()
        small = [f"{kind}:{m}:{n}:{k}:save" for kind in (*TYPES, *OTHER_TYPES) for m, n, k in GOLDEN]
        sweep = [f"{kind}:{m}:{n}:{k}" for kind in TYPES for m, k in SWEEP_PAIRS for n in SWEEP_COLUMNS]
        headline = [f"{kind}:{HEADLINE[0]}:{HEADLINE[1]}:{HEADLINE[2]}:save" for kind in (*TYPES, *OTHER_TYPES)]
        rounds: dict[str, list[list[dict]]] = {"stock": [], "ours": []}
        for _ in range(2):
            rounds["stock"].append(self.timed(headline + sweep, OFF, "stock"))
            rounds["ours"].append(self.timed(headline + sweep, ON, "ours"))
        every = self.timed(headline + small, ALL, "every")
        self.timed(small, OFF, "stock")

        def time_of(which: str, index: int) -> float:
            return min(one[index]["us"] for one in rounds[which])

        def difference(case: dict, folder: str) -> tuple[float, float]:
            name = f"{case['type']}-{case['m']}-{case['n']}-{case['k']}.f32"
            stock, ours = (np.fromfile(self.work / where / name, np.float32).astype(np.float64) for where in ("stock", folder))
            return float(((stock - ours) ** 2).sum() / (stock**2).sum()), float(np.abs(stock - ours).max())

        self.result["mmq"], self.result["sweep"], self.result["outputs"] = [], [], []
        for index, case in enumerate(every[: len(headline)]):
            stock, ours = time_of("stock", index), case["us"]
            error, largest = difference(case, "every")
            row = {**{key: case[key] for key in ("type", "m", "n", "k")}, "stock_us": stock, "ours_us": ours, "ratio": round(stock / ours, 3), "nmse": error}
            self.result["mmq"].append(row)
            print(f"mmq {row['type']:7} stock {stock:7.1f} us, ours {ours:7.1f} us, ratio {row['ratio']:.2f}, nmse {error:.2g}, max {largest:.3g}")
            if row["ratio"] < WANTED.get(case["type"], 0):
                self.fail(f"mmq {case['type']}: {row['ratio']:.2f} of stock's speed, wanted {WANTED[case['type']]}")
        for case in every[len(headline) :]:
            error, largest = difference(case, "every")
            self.result["outputs"].append({**{key: case[key] for key in ("type", "m", "n", "k")}, "nmse": error, "max_error": largest})
            if not error < 1e-3:
                self.fail(f"outputs of {case['type']} {case['m']}x{case['n']}x{case['k']}: nmse {error:.2g}")
        for index, case in enumerate(rounds["stock"][0][len(headline) :], len(headline)):
            stock, ours = time_of("stock", index), time_of("ours", index)
            row = {**{key: case[key] for key in ("type", "m", "n", "k")}, "stock_us": stock, "ours_us": ours, "ratio": round(stock / ours, 3)}
            self.result["sweep"].append(row)
        slow = [row for row in self.result["sweep"] if row["ratio"] < 0.98]
        print(
            f"sweep: {len(self.result['sweep'])} products, slower than 0.98: "
            + (", ".join(f"{r['type']} {r['m']}x{r['n']}x{r['k']} {r['ratio']}" for r in slow) or "none")
        )
        if slow:
            self.fail(f"{len(slow)} products of the sweep are slower than 0.98 of stock's speed")
        self.golden()

    def golden(self) -> None:
        """Stock's outputs of the small products, for checks without a GPU."""
        folder = self.out / "golden"
        folder.mkdir(exist_ok=True)
        import numpy as np

        arrays = {path.stem: np.fromfile(path, np.float32) for path in sorted((self.work / "stock").glob("*.f32")) if path.stat().st_size < 100_000}
        np.savez_compressed(folder / "stock-mmq-cuda.npz", **arrays)

    def models(self) -> None:
        """llama-bench, stock and ours in turn."""
        self.wait_for_models()
        self.result["bench"] = []
        for mix, wanted in MIXES.items():
            speeds: dict[tuple[str, str], list[float]] = {}
            for _ in range(RUNS):
                for which, environment in (("stock", OFF), ("ours", ON)):
                    text = run([self.programs / "llama-bench", "-m", self.model(mix), "-p", "512,4096", "-n", "32", "-r", "2", "-o", "jsonl"],
                               environment=environment, timeout=120)  # fmt: skip
                    for line in map(json.loads, text.splitlines()):
                        test = f"pp{line['n_prompt']}" if line["n_prompt"] else f"tg{line['n_gen']}"
                        speeds.setdefault((test, which), []).append(line["avg_ts"])
            for test in ("pp512", "pp4096", "tg32"):
                stock, ours = statistics.median(speeds[test, "stock"]), statistics.median(speeds[test, "ours"])
                row = {"model": f"llama3-8b {mix}", "test": test, "stock_tps": round(stock, 1), "ours_tps": round(ours, 1), "ratio": round(ours / stock, 3),
                       "runs": RUNS, "stock_runs": [round(v, 1) for v in speeds[test, "stock"]], "ours_runs": [round(v, 1) for v in speeds[test, "ours"]]}  # fmt: skip
                self.result["bench"].append(row)
                print(f"{row['model']} {test}: stock {stock:.0f}, ours {ours:.0f}, ratio {row['ratio']:.3f}")
                if row["ratio"] < (wanted if test.startswith("pp") else 0.98):
                    self.fail(f"{row['model']} {test}: {row['ratio']:.3f} of stock's speed")

    def off(self) -> None:
        """Our build with WAVESMITH=0 against unpatched stock: the same objects, with the unpatched ggml-cuda.cu and without the module."""
        library = self.unpatched_library()
        speeds: dict[str, list[float]] = {"unpatched": [], "off": []}
        for _ in range(RUNS):
            for which, environment in (("unpatched", {"LD_LIBRARY_PATH": str(library.parent)}), ("off", OFF)):
                text = run([self.programs / "llama-bench", "-m", self.model("Q4_K_M"), "-p", "512", "-n", "32", "-r", "3", "-o", "jsonl"],
                           environment=environment, timeout=120)  # fmt: skip
                speeds[which] += [line["avg_ts"] for line in map(json.loads, text.splitlines()) if line["n_prompt"]]
        ratio = statistics.median(speeds["off"]) / statistics.median(speeds["unpatched"])
        self.result["stock_off"] = {"test": "llama3-8b Q4_K_M pp512", "ratio": round(ratio, 4), **{k: [round(v, 1) for v in s] for k, s in speeds.items()}}
        print(f"WAVESMITH=0 against unpatched: {ratio:.4f}")
        if ratio < 0.99:
            self.fail(f"WAVESMITH=0 reaches {ratio:.4f} of unpatched stock's speed")

    def unpatched_library(self) -> Path:
        source = self.llama / "ggml/src/ggml-cuda/ggml-cuda.cu"
        plain = source.with_name("ggml-cuda-unpatched.cu")
        plain.write_text(without_hook(source.read_text()))
        folder = self.work / "unpatched"
        folder.mkdir(exist_ok=True)
        build = self.work / "build"
        commands = json.loads(run(["ninja", "-C", build, "-t", "compdb"]))
        compiled = next(one for one in commands if one["file"].endswith("ggml-cuda/ggml-cuda.cu"))
        target = folder / "ggml-cuda.o"
        command = compiled["command"].replace(compiled["file"], str(plain)).replace("-DGGML_CUSTOM_KERNELS ", "")
        command = command.replace(compiled["output"], str(target))
        linked = next(one for one in commands if re.search(r"libggml-cuda\.so[.\d]*$", one["output"]) and "-shared" in one["command"])
        link = re.sub(r"\S*ggml-custom-kernels-wavesmith\.dir\S*\.o", "", linked["command"])
        name = Path(linked["output"]).name
        link = link.replace(compiled["output"], str(target)).replace(f"-o {linked['output']}", f"-o {folder / name}")
        link = link.split("&&")[1] if "&&" in link else link
        for text in (command, link):
            run(["bash", "-c", f"cd {compiled['directory']} && {text.strip()}"], timeout=200)
        for path in self.programs.glob("libggml-cuda.so*"):
            if path.name != name:
                (folder / path.name).unlink(missing_ok=True)
                (folder / path.name).symlink_to(name)
        if b"ggml_custom_kernels" in (folder / name).read_bytes():
            raise Failure("the unpatched library still has the hook")
        return folder / name

    def memory(self) -> None:
        """compute-sanitizer on a short list of products that ours runs."""
        self.result["memory"] = {}
        for tool in ("memcheck", "racecheck"):
            for op, cases in (("MUL_MAT", MEMORY_CASES), ("MUL_MAT_ID", MEMORY_CASES_ID)):
                text = run(["compute-sanitizer", "--tool", tool, "--kernel-name", "kernel_substring=kernel_entry", self.programs / "test-backend-ops", "test",
                            "-b", "CUDA0", "-o", op, "-p", cases], environment=ALL, timeout=150, log=self.out / f"{tool}-{op}.log", check=False)  # fmt: skip
                summary = re.findall(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)", text)
                passed = re.search(r"(\d+)/(\d+) tests passed", text)
                errors = sum(int(a or b) for a, b in summary)
                self.result["memory"][f"{tool} {op}"] = {"errors": errors, "cases": int(passed[2]) if passed else 0}
                print(f"{tool} {op}: {errors} errors in {passed[2] if passed else 0} cases")
                if not summary or errors or not passed or passed[1] != passed[2] or int(passed[2]) == 0:
                    self.fail(f"{tool} {op}: {errors} errors, {passed[0] if passed else 'no result'}")


def without_hook(text: str) -> str:
    """ggml-cuda.cu as the preprocessor sees it without GGML_CUSTOM_KERNELS."""
    return re.sub(r"^#ifdef GGML_CUSTOM_KERNELS\n.*?^#endif\n", "", text, flags=re.MULTILINE | re.DOTALL)


def main() -> int:
    llama, out = Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute()
    steps = sys.argv[3:] or [step for step in STEPS if step != "choose"]
    if unknown := [step for step in steps if step not in STEPS]:
        print(f"check.py: no step {unknown[0]}; steps are {', '.join(STEPS)}", file=sys.stderr)
        return 2
    out.mkdir(parents=True, exist_ok=True)
    check = Check(llama, out)
    check.work.mkdir(parents=True, exist_ok=True)
    if "build" not in steps:
        check.llama = Path(check.result.get("source", llama))
    for step in steps:
        begin = time.monotonic()
        try:
            getattr(check, step)()
        except Failure as error:
            check.fail(f"{step}: {error}")
        print(f"-- {step}: {time.monotonic() - begin:.0f} s")
        check.save()
        if step == "build" and check.result["failures"]:
            break
    check.wait_for_models()
    return 1 if check.result["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
