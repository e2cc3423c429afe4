"""Real launchers on hosts of namespaces: what they tell a process, what their exit codes are, and that the scripts of tools/launch
do what their comments say. Run by ctest as launchers_test.py PRINT_PLACE; needs root and `tools/dev setup --tests`.

In the place of shardc, launchers start tests/cluster/programs/print_place.cpp or a few lines of shell: how shardc itself behaves
under them is tested where it is started.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LAUNCH = ROOT / "tools" / "launch"
PRINT_PLACE = ""

sys.path.insert(0, str(ROOT / "tests" / "cluster"))
from slurm_cluster import SlurmCluster  # noqa: E402
from two_hosts import Hosts  # noqa: E402

try:
    import yaml
except ImportError:
    # Debian's, for a Python that is not Debian's.
    sys.path.append("/usr/lib/python3/dist-packages")
    import yaml


def needs(*programs: str):
    """Skips a test if the machine lacks one of these programs, or root; with CI=true it fails then."""
    missing = [name for name in programs if shutil.which(name) is None] + ([] if os.geteuid() == 0 else ["root"])
    return unittest.skipIf(missing and os.environ.get("CI") != "true", f"missing: {', '.join(missing)}; tools/dev setup --tests")


def lines_of(done: subprocess.CompletedProcess) -> list[str]:
    return sorted(line for line in done.stdout.splitlines() if line)


def variables_read() -> set[str]:
    """The names of variables in the sources of FindPlace."""
    texts = [path.read_text() for path in (ROOT / "compiler" / "cluster").glob("*.cpp")]
    return {name for text in texts for name in re.findall(r'"([A-Z][A-Za-z]*(?:_[A-Za-z]+)+|RANK)"', text)}


class ScriptsTest(unittest.TestCase):
    def test_shell(self):
        scripts = sorted([*LAUNCH.glob("*.sh"), *LAUNCH.glob("*.sbatch")])
        self.assertEqual([script.name for script in scripts], ["mpirun.sh", "slurm.sbatch", "torchrun.sh"])
        for script in scripts:
            self.assertEqual(subprocess.run(["bash", "-n", script]).returncode, 0, script)

    @needs("shellcheck")
    def test_shellcheck(self):
        scripts = [*LAUNCH.glob("*.sh"), *LAUNCH.glob("*.sbatch")]
        done = subprocess.run(["shellcheck", *scripts], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_scripts_ask_for_what_is_missing(self):
        for script, names in {"torchrun.sh": ("HOSTS", "NODE_RANK", "MASTER", "RANKS_PER_HOST"),
                              "mpirun.sh": ("HOSTS", "RANKS_PER_HOST")}.items():
            for missing in names:
                done = subprocess.run([LAUNCH / script, "r.toml"], capture_output=True, text=True,
                                      env={"PATH": os.environ["PATH"]} | {name: "1" for name in names if name != missing})
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(f"{missing}: ", done.stderr)

    def test_torchrun_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            stand_in = pathlib.Path(folder) / "torchrun"
            stand_in.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
            stand_in.chmod(0o755)
            for restarts, told in (({}, "0"), ({"RESTARTS": "3"}, "3")):
                done = subprocess.run([LAUNCH / "torchrun.sh", "r.toml", "--set", "a=1"], capture_output=True, text=True, env=restarts | {
                    "PATH": f"{folder}:{os.environ['PATH']}", "HOSTS": "2", "NODE_RANK": "1", "MASTER": "node0", "RANKS_PER_HOST": "3"})
                self.assertEqual(done.stdout.split("\n"), [
                    "--nnodes=2", "--node-rank=1", "--nproc-per-node=3", "--master-addr=node0", "--master-port=29500",
                    "--rdzv-id=train", f"--max-restarts={told}", "--no-python", "shardc", "run", "r.toml", "--set", "a=1", ""])

    def test_kubernetes(self):
        service, job = yaml.safe_load_all((LAUNCH / "k8s.yaml").read_text())
        self.assertEqual((service["kind"], job["kind"]), ("Service", "Job"))
        name, spec = job["metadata"]["name"], job["spec"]
        pod = spec["template"]["spec"]
        variables = {one["name"]: one["value"] for one in pod["containers"][0]["env"]}
        # Names that nobody reads would be a mistake; the index is set by Kubernetes.
        self.assertEqual(set(variables) - variables_read(), set())
        self.assertIn("JOB_COMPLETION_INDEX", variables_read())
        self.assertEqual(spec["completionMode"], "Indexed")
        self.assertEqual(service["spec"]["clusterIP"], "None")
        self.assertEqual(service["spec"]["selector"], {"job-name": name})
        self.assertEqual(pod["subdomain"], service["metadata"]["name"])
        self.assertEqual(variables["MASTER_ADDR"], f"{name}-0.{pod['subdomain']}")
        self.assertEqual({int(variables["WORLD_SIZE"]), spec["parallelism"]}, {spec["completions"]})
        # What a pod sees.
        done = subprocess.run([PRINT_PLACE], capture_output=True, text=True, env=variables | {"JOB_COMPLETION_INDEX": "1"})
        self.assertEqual(done.stdout, "Kubernetes 1/2 0/1 train-0.train:29500 restart 0\n")

    def test_documented(self):
        """The table of variables in docs/cluster.md, and those that are read."""
        text = (ROOT / "docs" / "cluster.md").read_text()
        table = text[text.index("## Variables"):].split("\n## ")[0]
        self.assertEqual(set(re.findall(r"`((?:[A-Z]+_)+[A-Za-z_]+|RANK)`", table)), variables_read())


@needs("ip", "nsenter", "unshare")
class HostsTest(unittest.TestCase):
    def test_hosts_are_apart(self):
        with Hosts(2) as hosts:
            for index, host in enumerate(hosts):
                seen = host.run(["sh", "-c", "hostname; ip -4 -o addr show eth0; ls /dev/shm; getent hosts node0"],
                                capture_output=True, text=True).stdout
                self.assertIn(f"node{index}\n", seen)
                self.assertIn(f"10.77.0.{index + 1}/24", seen)
                self.assertIn("fd77::1", seen)
            hosts[0].run(["touch", "/dev/shm/x"])
            self.assertEqual(hosts[1].run(["ls", "/dev/shm"], capture_output=True).stdout, b"")
            self.assertEqual(hosts[0].run(["sh", "-c", "exit 9"]).returncode, 9)
            self.assertEqual(subprocess.run([hosts.agent, "-x", "node1", "hostname; exit 8"], capture_output=True).stdout, b"node1\n")

    SEND = ("import socket, sys\ns = socket.create_connection((sys.argv[1], 7000), timeout=2)\ns.sendall(bytes(1000000))\n"
            "s.shutdown(socket.SHUT_WR)\nassert s.recv(1) == b'x'\n")
    RECEIVE = ("import socket\nd = socket.create_server(('::', 7000), family=socket.AF_INET6, dualstack_ipv6=True)\n"
               "print(flush=True)\nwhile True:\n  c = d.accept()[0]\n  while c.recv(65536): pass\n  c.sendall(b'x')\n")

    def test_counters_and_faults(self):
        with Hosts(2) as hosts:
            server = hosts[0].start([sys.executable, "-c", self.RECEIVE], stdout=subprocess.PIPE)
            server.stdout.readline()

            def send(to: str) -> int:
                return hosts[1].run([sys.executable, "-c", self.SEND, to], stderr=subprocess.DEVNULL).returncode

            for address in (hosts[0].address, hosts[0].address6, "node0"):
                before = hosts[1].counters()
                self.assertEqual(send(address), 0)
                sent = hosts[1].counters()["sent"] - before["sent"]
                self.assertGreater(sent, 1000000)
                # Frames carry large segments, so headers are few.
                self.assertLess(sent, 1060000)
            begin = time.monotonic()
            # What node0 sends to node1 is lost; node1 is not told, and waits until its time is over.
            hosts[0].lose(hosts[1].address)
            self.assertEqual(send(hosts[0].address), 1)
            self.assertGreater(time.monotonic() - begin, 1.9)
            hosts[0].link_up()
            self.assertEqual(send(hosts[0].address), 0)
            hosts[0].link_down()
            self.assertEqual(send(hosts[0].address), 1)
            hosts[0].kill()
            server.wait(timeout=5)
            server.stdout.close()

    def test_nothing_is_left(self):
        """The program that made the hosts is killed; all that runs on them ends too."""
        script = ROOT / "tests" / "cluster" / "two_hosts.py"
        # Other runs of this test may be under way.
        sleep = f"sleep {1000000 + os.getpid()}"
        maker = subprocess.Popen([sys.executable, script, "run", "--", "sh", "-c", f"{sleep} & echo started; wait"],
                                 stdout=subprocess.PIPE, text=True)
        self.addCleanup(maker.stdout.close)
        self.addCleanup(maker.wait)
        self.addCleanup(maker.kill)
        self.assertEqual({maker.stdout.readline(), maker.stdout.readline()}, {"node0: started\n", "node1: started\n"})
        self.wait_for(lambda: len(self.processes(sleep)) == 2)
        folders = set(pathlib.Path("/tmp").glob("hosts.*"))
        maker.kill()
        maker.wait()
        self.wait_for(lambda: self.processes(sleep) == [])
        self.wait_for(lambda: folders - set(pathlib.Path("/tmp").glob("hosts.*")))
        self.assertNotIn("port0", subprocess.run(["ip", "link"], capture_output=True, text=True).stdout)

    def wait_for(self, condition) -> None:
        end = time.monotonic() + 20
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    @staticmethod
    def processes(command: str) -> list[str]:
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if path.read_bytes().replace(b"\0", b" ").decode().strip() == command:
                    found.append(path.parent.name)
            except (OSError, UnicodeDecodeError):
                pass
        return found


@needs("mpirun.openmpi", "mpiexec.hydra", "ip")
class MpiTest(unittest.TestCase):
    PLACES = [f"{{}} {i}/4 {i % 2}/2 node0:29500 restart 0" for i in range(4)]

    def places(self, name: str) -> list[str]:
        return [place.format(name) for place in self.PLACES]

    def run_script(self, hosts: Hosts, mpirun: str, program: str) -> subprocess.CompletedProcess:
        """tools/launch/mpirun.sh, with hosts' agent in the place of ssh."""
        return hosts[0].run([LAUNCH / "mpirun.sh", "r.toml"], capture_output=True, text=True, timeout=60, env=os.environ | {
            "HOSTS": "node0,node1", "RANKS_PER_HOST": "2", "MPIRUN": mpirun, "SHARDC": program, "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_plm_rsh_agent": hosts.agent, "HYDRA_LAUNCHER": "rsh",
            "HYDRA_LAUNCHER_EXEC": hosts.agent})

    def test_scripts_on_two_hosts(self):
        with Hosts(2) as hosts, tempfile.TemporaryDirectory() as folder:
            saved = pathlib.Path(folder) / "saved"
            saved.write_text("#!/bin/sh\nexit 75\n")
            saved.chmod(0o755)
            for mpirun, name in (("mpirun.openmpi", "Open MPI"), ("mpiexec.hydra", "Hydra")):
                done = self.run_script(hosts, mpirun, PRINT_PLACE)
                self.assertEqual((done.returncode, lines_of(done)), (0, self.places(name)), done.stderr)
                self.assertEqual(self.run_script(hosts, mpirun, str(saved)).returncode, 75)

    def test_by_node_is_refused_by_every_process(self):
        with Hosts(2) as hosts:
            done = hosts[0].run(["mpirun.openmpi", "--allow-run-as-root", "--mca", "plm_rsh_agent", hosts.agent, "--host",
                                 "node0:2,node1:2", "--map-by", "node", "-n", "4", "--mca", "orte_abort_on_non_zero_status", "0",
                                 "-x", "MASTER_ADDR=node0", "-x", "MASTER_PORT=29500", PRINT_PLACE],
                                capture_output=True, text=True, timeout=60)
        refused = [line for line in done.stdout.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(refused), 4, done.stdout + done.stderr)
        self.assertIn("Open MPI did not number the processes host by host (OMPI_MCA_rmaps_base_mapping_policy=node)", refused[0])


@needs("slurmctld", "slurmd", "munged", "srun", "ip")
class SlurmTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = SlurmCluster().__enter__()

    @classmethod
    def tearDownClass(cls):
        folder = cls.cluster.folder
        cls.cluster.__exit__()
        assert not folder.exists()

    def on_login(self, *command: str, **options) -> subprocess.CompletedProcess:
        return self.cluster.run(list(command), capture_output=True, text=True, timeout=120, cwd=self.cluster.folder, **options)

    def job_of(self, script: str, *options: str) -> str:
        """The output of a batch script."""
        self.cluster.wait(self.cluster.submit("--output=job.out", *options, "--wrap", script))
        return (self.cluster.folder / "job.out").read_text()

    def places(self, port: str) -> list[str]:
        return [f"Slurm {i}/4 {i % 2}/2 node0:{port} restart 0" for i in range(4)]

    def without_port(self, done: subprocess.CompletedProcess) -> list[str]:
        return [re.sub(r":\d+ ", ":PORT ", line) for line in lines_of(done)]

    def test_steps(self):
        """srun from a host that has no task, where SLURM_LAUNCH_NODE_IPADDR is not that of task 0."""
        for pmi in ("none", "pmi2"):
            done = self.on_login("srun", f"--mpi={pmi}", "-N2", "--ntasks-per-node=2", PRINT_PLACE)
            self.assertEqual(self.without_port(done), self.places("PORT"), done.stderr)

    def test_shells_and_scripts_are_one_process(self):
        self.assertEqual(self.job_of(PRINT_PLACE, "-N2", "--ntasks-per-node=2"), "no launcher\n")
        self.assertEqual(lines_of(self.on_login("salloc", "-N2", "--ntasks-per-node=2", PRINT_PLACE)), ["no launcher"])
        self.assertEqual(lines_of(self.on_login("srun", "-n1", PRINT_PLACE)), ["no launcher"])

    def test_placements_that_are_refused(self):
        for options, said in {
            ("-N2", "-n4"): "SLURM_STEP_TASKS_PER_NODE=3,1",
            ("-N2", "--ntasks-per-node=2", "--distribution=cyclic"): "SLURM_DISTRIBUTION=cyclic",
        }.items():
            done = self.on_login("srun", *options, PRINT_PLACE)
            self.assertEqual(done.returncode, 6)
            self.assertEqual(done.stdout.count(said), 4, done.stdout)
        done = self.on_login("srun", "-N2", "--ntasks-per-node=1", "--distribution=cyclic", PRINT_PLACE)
        self.assertEqual((done.returncode, len(lines_of(done))), (0, 2), done.stdout)

    def test_mpi_in_a_job(self):
        """mpirun starts its daemons by srun, whose variables the ranks see too, on some hosts."""
        for mpirun, name in (
            ("mpirun.openmpi --allow-run-as-root --map-by ppr:2:node -x MASTER_ADDR -x MASTER_PORT -n 4", "Open MPI"),
            ("mpiexec.hydra -ppn 2 -n 4", "Hydra"),
        ):
            text = self.job_of(f"MASTER_ADDR=node0 MASTER_PORT=29500 {mpirun} {PRINT_PLACE} 2>/dev/null", "-N2", "--ntasks-per-node=2")
            self.assertEqual(sorted(text.splitlines()), [f"{name} {i}/4 {i % 2}/2 node0:29500 restart 0" for i in range(4)])

    def test_template_starts_the_job_again_until_it_is_done(self):
        """tools/launch/slurm.sbatch: 75 twice, then 0; the second time it was SIGUSR1 to the job that stopped the ranks."""
        stand_in = self.cluster.folder / "shardc"
        stand_in.write_text(f"""#!/bin/bash
{PRINT_PLACE} "$@" | sed "s/:[0-9]* /:PORT /"
case ${{SLURM_RESTART_COUNT:-0}} in
  0) exit 75 ;;
  1) trap 'echo "told to stop"; exit 75' USR1
     touch {self.cluster.folder}/listens.$SLURM_PROCID
     # A task that does not listen yet would be killed.
     if [ $SLURM_PROCID = 0 ]; then
       until [ "$(ls {self.cluster.folder}/listens.* | wc -l)" = 4 ]; do sleep 0.1; done
       scancel --signal=USR1 $SLURM_JOB_ID
     fi
     for i in $(seq 150); do sleep 0.2; done; exit 1 ;;
  *) echo "$@, $SLURM_CPUS_PER_TASK cores"; exit 0 ;;
esac
""")
        stand_in.chmod(0o755)
        job = self.cluster.submit("--output=train.log", "--time=5", "--cpus-per-task=2", str(LAUNCH / "slurm.sbatch"), "r.toml",
                                  "--set", "a=1", env=self.cluster.environment() | {"SHARDC": str(stand_in)})
        ended = self.cluster.wait(job)
        log = (self.cluster.folder / "train.log").read_text()
        self.assertEqual(ended, ("COMPLETED", 0), log)
        for restart in range(3):
            for i in range(4):
                self.assertIn(f"Slurm {i}/4 {i % 2}/2 node0:PORT restart {restart}\n", log)
        self.assertEqual(log.count("told to stop"), 4, log)
        self.assertEqual(log.count("run r.toml --set a=1, 2 cores\n"), 4, log)
        self.assertEqual(log.count("goes into the queue again"), 2, log)


if __name__ == "__main__":
    PRINT_PLACE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
