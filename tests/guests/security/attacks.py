"""What one user's I/O does to another's: a victim who creates files with fsync and one who
reads, alone and beside each attack, SECONDS of each. Runs as root in a guest, in the device's file
system; a line of JSON an attack."""

import json
import mmap
import os
import random
import re
import signal
import sys
import threading
import time

SECONDS = float(sys.argv[1])
WANTED = sys.argv[2:]
PAGE = 4096
NOBODY = 65534
CGROUPS = "/sys/fs/cgroup"
TRACING = "/sys/kernel/tracing"
# What holds the scheduler's lock, with interrupts off, for nearly all of its time.
LOCKED = ["dispatch", "insert_requests", "finish_request", "bio_merge", "wait_begins", "wait_ended"]


def make(name, mib):
    """A file that is on the device."""
    with open(name, "wb") as file:
        for _ in range(mib):
            file.write(os.urandom(4096) * 256)
        os.fsync(file.fileno())
    os.chown(name, NOBODY, NOBODY)


def at_random(mib, size=PAGE):
    return random.randrange(mib * 1048576 // size) * size


def buffer(size=PAGE):
    """As O_DIRECT wants it."""
    memory = mmap.mmap(-1, size)
    memory.write(b"x" * size)
    return memory


def fsyncs(number):
    fd = os.open(f"attacker-{number}", os.O_RDWR)
    while True:
        os.pwrite(fd, b"a" * PAGE, at_random(16))
        os.fsync(fd)


def large_fsyncs(number):
    """What is written back is waited for: all of it is promoted."""
    fd = os.open(f"attacker-{number}", os.O_RDWR)
    while True:
        for _ in range(512):
            os.pwrite(fd, b"a" * PAGE, at_random(16))
        os.fsync(fd)


def many_waiters(_):
    """On one file, so that whatever is written of it is compared with all of them."""
    fd = os.open("attacker-0", os.O_RDWR)

    def wait():
        while True:
            os.pwrite(fd, b"a" * PAGE, at_random(16))
            os.fsync(fd)

    for _ in range(64):
        threading.Thread(target=wait, daemon=True).start()
    wait()


def sync_flat_out(number):
    """Half of them read much, half write little, none waits for anything else."""
    writes = number % 2
    size = PAGE if writes else 64 * PAGE
    fd = os.open(f"attacker-{number}", os.O_RDWR | os.O_DIRECT | (os.O_DSYNC if writes else 0))
    memory = buffer(size)
    while True:
        if writes:
            os.pwritev(fd, [memory], at_random(16, size))
        else:
            os.preadv(fd, [memory], at_random(16, size))


def small_writes(number):
    """Asynchronous, as many as the queue has tags for."""
    fd = os.open(f"attacker-{number}", os.O_RDWR)
    while True:
        for _ in range(64):
            os.pwrite(fd, b"a" * PAGE, at_random(16))
        # Starts writeback and waits for none.
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def best_effort_0(number):
    """The highest I/O priority that one may give oneself."""
    ionice = ["busybox", "ionice", "-c", "2", "-n", "0", "-p", str(os.getpid())]
    if os.spawnvp(os.P_WAIT, "busybox", ionice) != 0:
        raise OSError("ionice failed")
    sync_flat_out(number)


def own_cgroup(number):
    """Each in a cgroup of its own below."""
    (fsyncs if number % 2 else sync_flat_out)(number)


def truncates(number):
    """Small discards, where the file system is mounted so."""
    fd = os.open(f"attacker-{number}", os.O_RDWR)
    while True:
        os.pwrite(fd, b"a" * 64 * PAGE, 0)
        os.fsync(fd)
        for pages in range(62, -1, -2):
            os.ftruncate(fd, pages * PAGE)
        os.fsync(fd)


ATTACKS = {
    "nobody": (None, 0),
    "fsync of 4 KB": (fsyncs, 8),
    "fsync of 2 MB": (large_fsyncs, 8),
    "fsync of one file, 520 tasks": (many_waiters, 8),
    "sync flat out": (sync_flat_out, 8),
    "sync flat out, ionice -c 2 -n 0": (best_effort_0, 8),
    "sync and fsync, 24 cgroups": (own_cgroup, 24),
    "small async writes": (small_writes, 8),
    "truncates": (truncates, 8),
}


def creates(end, _):
    number = 0
    while time.monotonic() < end:
        begin = time.monotonic()
        fd = os.open(f"victim-{number % 64}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(fd, b"v" * PAGE)
        os.fsync(fd)
        os.close(fd)
        number += 1
        yield time.monotonic() - begin


def reads(end, memory):
    fd = os.open("victim", os.O_RDONLY | os.O_DIRECT)
    while time.monotonic() < end:
        begin = time.monotonic()
        os.preadv(fd, [memory], at_random(32))
        yield time.monotonic() - begin


class Tracer:
    """Of how long the scheduler's functions take, where it is ours."""

    def __init__(self):
        self.is_on = False
        if not os.path.exists(f"{TRACING}/trace"):
            mount = ["busybox", "mount", "-t", "tracefs", "none", TRACING]
            os.spawnvp(os.P_WAIT, "busybox", mount)
        with open(f"{TRACING}/available_filter_functions") as names:
            known = {name.split()[0] for name in names if "[frontrow_iosched]" in name}
        traced = sorted(known & {f"frontrow_{name}" for name in LOCKED})
        if traced:
            self.write("set_ftrace_filter", " ".join(traced))
            self.write("buffer_size_kb", "32768")
            self.write("current_tracer", "function_graph")
            self.is_on = True

    def write(self, name, value):
        with open(f"{TRACING}/{name}", "w") as file:
            file.write(value)

    def longest(self):
        """Since the last time: in microseconds, and which it was."""
        with open(f"{TRACING}/trace") as trace:
            found = re.findall(r"([0-9.]+) us +\| +(frontrow_[a-z_]+)", trace.read())
        self.write("trace", "")
        return max(((float(took), name) for took, name in found), default=(0, "none"))


def enter(cgroup):
    os.makedirs(f"{CGROUPS}/{cgroup}", exist_ok=True)
    with open(f"{CGROUPS}/{cgroup}/cgroup.procs", "w") as procs:
        procs.write("0")


def start(cgroup, work):
    process = os.fork()
    if process == 0:
        try:
            enter(cgroup)
            work()
        except BaseException as error:
            print(error, file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return process


def attacker(work, number):
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    random.seed(number)
    work(number)


def victim(work, result):
    random.seed(0)
    times = sorted(work(time.monotonic() + SECONDS, buffer()))
    os.write(result, json.dumps([len(times) / SECONDS, times[-1] * 1000]).encode())


def measure(name):
    work, count = ATTACKS[name]
    attackers = []
    for number in range(count):
        cgroup = f"attacker/{number}" if work is own_cgroup else "attacker/all"
        attackers.append(start(cgroup, lambda: attacker(work, number)))
    time.sleep(1)
    told = {"attack": name}
    victims = []
    for what, act in [("creates", creates), ("reads", reads)]:
        result, told_to = os.pipe()
        process = start("victim", lambda: victim(act, told_to))
        victims.append((what, process, result))
    for what, process, result in victims:
        os.waitpid(process, 0)
        told[what + "_per_s"], told[what + "_worst_ms"] = (
            round(it, 1) for it in json.loads(os.read(result, 4096))
        )
    for process in attackers:
        ended, _ = os.waitpid(process, os.WNOHANG)
        if ended:
            sys.exit(f"{name}: an attacker has ended")
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    if TRACER.is_on:
        told["locked_longest_us"], told["by"] = TRACER.longest()
    os.sync()
    print(json.dumps(told), flush=True)


for level in [".", "attacker"]:
    os.makedirs(f"{CGROUPS}/{level}", exist_ok=True)
    with open(f"{CGROUPS}/{level}/cgroup.subtree_control", "w") as control:
        control.write("+memory +io +cpu")
TRACER = Tracer()
make("victim", 32)
for number in range(max(count for _, count in ATTACKS.values())):
    make(f"attacker-{number}", 16)
for name in WANTED or ATTACKS:
    measure(name)
