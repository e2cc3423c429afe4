#!/usr/bin/env python3
"""Several hosts on this machine: each is a set of namespaces (network, host name, mounts, processes, shared memory) with addresses
of its own, and a bridge joins them. Needs root, and nothing but iproute2 and util-linux.

Nothing is left: a host is held by one process, its init, which dies with the program that made it, and the kernel then ends
every process of the host and takes its interfaces away. All of it, the bridge included, lies in namespaces without names.

    two_hosts.py run [--hosts N] -- COMMAND...    runs COMMAND once on each host, at the same time; {index}, {name}, {address},
                                                  {address6}, {first} (the first host's name) and {agent} are filled in. Each line of its
                                                  output begins with the host's name. The exit code is the largest of all.
                                                  Standard error ends with the bytes that each host's interface sent and received.
    two_hosts.py hold [--hosts N]                 makes the hosts and prints them, one JSON object; takes them down when its
                                                  standard input ends. `enter` is the command that runs what follows on a host.
    two_hosts.py remote FOLDER HOST COMMAND...    as `ssh HOST COMMAND` does, from any host to any other: for mpirun, which takes it as
                                                  `--mca plm_rsh_agent AGENT` or `-launcher rsh -launcher-exec AGENT`; AGENT is
                                                  {agent}, or `agent` of what `hold` prints
    two_hosts.py down|up|lose PID [ADDRESS]       of a host that is held by PID: takes its link down or up, or loses silently
                                                  what it sends to ADDRESS (a partition of one direction; `up` ends it)

As a module: `with Hosts(2) as hosts:`, then hosts[0].run([...]), .start([...]), .counters(), .link_down(), .lose(address);
hosts.agent.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading

INTERFACE = "eth0"
PR_SET_PDEATHSIG = 1
NAMESPACES = ("--net", "--uts", "--mount", "--ipc", "--pid")
# A unicast address that no interface has.
NOBODY = "02:00:00:00:00:99"


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def check(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Host:
    """A host that is held by process `pid`, seen from outside."""

    def __init__(self, pid: int, name: str = "", address: str = "", address6: str = ""):
        self.pid, self.name, self.address, self.address6 = pid, name, address, address6

    def enter(self, cwd: str | os.PathLike | None = None) -> list[str]:
        """What runs the command that follows on the host, in the folder `cwd` or the current one."""
        return ["nsenter", "--target", str(self.pid), *NAMESPACES, f"--wdns={os.path.abspath(cwd or os.getcwd())}", "--"]

    def start(self, command: list[str], **options) -> subprocess.Popen:
        """Runs `command` on the host. The returned process is nsenter, which waits for it and ends as it ends."""
        return subprocess.Popen([*self.enter(options.pop("cwd", None)), *command], **options)

    def run(self, command: list[str], **options) -> subprocess.CompletedProcess:
        return subprocess.run([*self.enter(options.pop("cwd", None)), *command], **options)

    def _ip(self, *arguments: str) -> str:
        return check("nsenter", "--target", str(self.pid), "--net", "--", "ip", *arguments)

    def counters(self) -> dict[str, int]:
        """Bytes that the interface sent and received: frames of Ethernet with their headers of 14 bytes."""
        statistics = json.loads(self._ip("-json", "-statistics", "link", "show", INTERFACE))[0]["stats64"]
        return {"sent": statistics["tx"]["bytes"], "received": statistics["rx"]["bytes"]}

    def link_down(self) -> None:
        self._ip("link", "set", INTERFACE, "down")

    def link_up(self) -> None:
        self._ip("link", "set", INTERFACE, "up")
        self._ip("neigh", "flush", "dev", INTERFACE, "nud", "permanent")

    def lose(self, address: str) -> None:
        """What the host sends to `address` is lost from now on, and nobody is told: frames go to an interface that is not there."""
        self._ip("neigh", "replace", address, "lladdr", NOBODY, "dev", INTERFACE, "nud", "permanent")

    def _nft(self, *arguments: str) -> str:
        return check("nsenter", "--target", str(self.pid), "--net", "--", "nft", *arguments)

    def lose_some(self, percent: int) -> None:
        """So many of a hundred packets that come to the host are lost, by chance. Needs nftables."""
        self._nft("add table inet loss; add chain inet loss input { type filter hook input priority 0; };"
                  f"add rule inet loss input iif {INTERFACE} numgen random mod 100 < {percent} counter drop")

    def lost(self) -> int:
        """How many packets `lose_some` has lost so far."""
        rows = json.loads(self._nft("--json", "list", "table", "inet", "loss"))["nftables"]
        return sum(part["counter"]["packets"] for row in rows if "rule" in row for part in row["rule"]["expr"] if "counter" in part)

    def kill(self) -> None:
        """The host is gone at once, with all its processes."""
        os.kill(self.pid, signal.SIGKILL)


def serve(path: str) -> None:
    """The door of a host: runs what `remote` asks for, with its standard streams, and tells the exit code."""

    def answer(connection: socket.socket) -> None:
        with connection:
            line, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
            child = subprocess.Popen(["sh", "-c", line.decode()], stdin=streams[0], stdout=streams[1], stderr=streams[2],
                                     start_new_session=True)
            for stream in streams:
                os.close(stream)

            def hang_up() -> None:
                # Nothing more is ever sent: the other side has ended.
                if not connection.recv(1):
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(child.pid, signal.SIGHUP)

            threading.Thread(target=hang_up, daemon=True).start()
            code = child.wait()
            with contextlib.suppress(OSError):
                connection.send(bytes([128 - code if code < 0 else code]))
                connection.shutdown(socket.SHUT_RDWR)

    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen(100)
        print(flush=True)
        while True:
            threading.Thread(target=answer, args=(door.accept()[0],), daemon=True).start()


def remote(folder: str, words: list[str]) -> int:
    # What mpirun may say to ssh.
    while words and words[0].startswith("-"):
        words = words[1:]
    with socket.socket(socket.AF_UNIX) as door:
        door.connect(f"{folder}/{words[0]}.door")
        socket.send_fds(door, [" ".join(words[1:]).encode()], [0, 1, 2])
        code = door.recv(1)
    return code[0] if code else 255


class Hosts:
    """Hosts node0, node1, ..., of addresses 10.77.0.1, ... and fd77::1, ..., which know each other's names."""

    def __init__(self, count: int = 2, names: list[str] | None = None):
        self.names = names or [f"node{i}" for i in range(count)]
        self.janitor: subprocess.Popen | None = None
        self.holders: list[subprocess.Popen] = []
        self.doors: list[subprocess.Popen] = []
        self.hosts: list[Host] = []

    def _hold(self, *namespaces: str) -> int:
        """A process that does nothing in new namespaces; its pid here."""
        # unshare --fork starts the host's init, which ends with unshare, which ends with this program.
        holder = subprocess.Popen(
            ["unshare", *namespaces, "--fork", "--kill-child", "--", "sh", "-c", "echo; exec sleep infinity"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=die_with_parent)
        self.holders.append(holder)
        if holder.stdout.readline() != b"\n":
            raise RuntimeError(f"no namespaces: {holder.stderr.read().decode().strip()}")
        return int(pathlib.Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()[0])

    def __enter__(self) -> "Hosts":
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self) -> None:
        switch = str(self._hold("--net"))
        in_switch = ("nsenter", "--target", switch, "--net", "--", "ip")
        check(*in_switch, "link", "add", "switch", "type", "bridge")
        check(*in_switch, "link", "set", "switch", "up")
        self.folder = tempfile.mkdtemp(prefix="hosts.")
        # Removes the folder when this program ends, however it ends: its standard input is a pipe that nobody else holds.
        self.janitor = subprocess.Popen(["sh", "-c", 'cat; rm -rf "$0"', self.folder], stdin=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        names = pathlib.Path(self.folder) / "hosts"
        names.write_text("127.0.0.1 localhost\n::1 localhost\n" + "".join(
            f"10.77.0.{i + 1} {name}\nfd77::{i + 1} {name}\n" for i, name in enumerate(self.names)))
        names.chmod(0o644)
        for index, name in enumerate(self.names):
            host = Host(self._hold(*NAMESPACES, "--mount-proc"), name, f"10.77.0.{index + 1}", f"fd77::{index + 1}")
            self.hosts.append(host)
            check("ip", "link", "add", INTERFACE, "netns", str(host.pid), "type", "veth",
                  "peer", "name", f"port{index}", "netns", switch)
            check(*in_switch, "link", "set", f"port{index}", "master", "switch")
            check(*in_switch, "link", "set", f"port{index}", "up")
            check(*host.enter(), "hostname", name)
            check(*host.enter(), "mount", "--bind", str(names), "/etc/hosts")
            # Shared memory of one host is not that of another.
            check(*host.enter(), "mount", "-t", "tmpfs", "tmpfs", "/dev/shm")
            host._ip("link", "set", "lo", "up")
            host._ip("address", "add", f"{host.address}/24", "dev", INTERFACE)
            host._ip("address", "add", f"{host.address6}/64", "dev", INTERFACE, "nodad")
            host._ip("link", "set", INTERFACE, "up")
            self.doors.append(host.start([sys.executable, __file__, "serve", f"{self.folder}/{name}.door"],
                                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec_fn=die_with_parent))
        for door in self.doors:
            door.stdout.readline()
        self.agent = f"{self.folder}/agent"
        pathlib.Path(self.agent).write_text(f'#!/bin/sh\nexec {sys.executable} {os.path.abspath(__file__)} remote {self.folder} "$@"\n')
        pathlib.Path(self.agent).chmod(0o755)

    def __exit__(self, *_) -> None:
        for door in self.doors:
            door.kill()
            door.wait()
            door.stdout.close()
        for holder in self.holders:
            holder.kill()
            holder.wait()
            holder.stdout.close()
            holder.stderr.close()
        if self.janitor:
            self.janitor.stdin.close()
            self.janitor.wait()

    def __getitem__(self, index: int) -> Host:
        return self.hosts[index]

    def __iter__(self):
        return iter(self.hosts)

    def __len__(self) -> int:
        return len(self.hosts)


def run_on_each(hosts: Hosts, command: list[str]) -> int:
    def show(host: Host, process: subprocess.Popen) -> None:
        for line in process.stdout:
            sys.stdout.write(f"{host.name}: {line}")
            sys.stdout.flush()

    started = []
    for index, host in enumerate(hosts):
        facts = {"{index}": str(index), "{name}": host.name, "{address}": host.address, "{address6}": host.address6,
                 "{first}": hosts[0].name, "{agent}": hosts.agent}
        words = command
        for key, value in facts.items():
            words = [word.replace(key, value) for word in words]
        process = host.start(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        reader = threading.Thread(target=show, args=(host, process))
        reader.start()
        started.append((process, reader))
    codes = []
    for process, reader in started:
        codes.append(process.wait())
        reader.join()
    for host in hosts:
        counted = host.counters()
        print(f"{host.name}: sent {counted['sent']} bytes, received {counted['received']}", file=sys.stderr)
    return max(128 - code if code < 0 else code for code in codes)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("run", "hold"):
        sub = verbs.add_parser(verb)
        sub.add_argument("--hosts", type=int, default=2, choices=range(1, 201), metavar="N")
        if verb == "run":
            sub.add_argument("command", nargs=argparse.REMAINDER)
    for verb in ("down", "up", "lose"):
        sub = verbs.add_parser(verb)
        sub.add_argument("pid", type=int)
        if verb == "lose":
            sub.add_argument("address")
    if arguments[:1] == ["remote"] and len(arguments) > 3:
        return remote(arguments[1], arguments[2:])
    if arguments[:1] == ["serve"] and len(arguments) == 2:
        return serve(arguments[1])
    options = parser.parse_args(arguments)
    if options.verb == "down":
        Host(options.pid).link_down()
    elif options.verb == "up":
        Host(options.pid).link_up()
    elif options.verb == "lose":
        Host(options.pid).lose(options.address)
    else:
        command = getattr(options, "command", [])
        if command[:1] == ["--"]:
            command = command[1:]
        if options.verb == "run" and not command:
            parser.error("run: which command?")
        with Hosts(options.hosts) as hosts:
            if options.verb == "run":
                return run_on_each(hosts, command)
            print(json.dumps({"agent": hosts.agent, "hosts": [
                {"name": host.name, "pid": host.pid, "address": host.address, "address6": host.address6,
                 "interface": INTERFACE, "enter": host.enter()} for host in hosts]}), flush=True)
            sys.stdin.read()
    return 0


if __name__ == "__main__":
    # A signal takes the hosts down too.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _: sys.exit(128 + received))
    sys.exit(main(sys.argv[1:]))
