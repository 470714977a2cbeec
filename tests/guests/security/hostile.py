# A user who tries to harm others through frontrowd: random calls, twenty a second, with cgroups
# made and removed. Run as that user: hostile.py SECONDS SEED
import fcntl
import json
import os
import socket
import sys
import time

OWN = "/sys/fs/cgroup/user.slice/user-1001.slice/user@1001.service/app.slice"
VICTIM = "/user.slice/user-1000.slice/user@1000.service/app.slice/app-game.scope"
PATH = OWN[len("/sys/fs/cgroup"):]
SOCKET = "/run/frontrowd/fg.sock"
FOCUS = "user.xdg.inactive-since"
# The first two have processes.
NAMES = ["app-game.scope", "app-mail.scope"] * 2 + ["app-%d.scope" % it for it in range(6)] + [
    "app-x [", "app-user.slice", "app-y]", "app-\x1b[2J.scope", "app-" + "n" * 240 + ".slice",
    "app-d.slice",
]

seconds, seed = float(sys.argv[1]), int(sys.argv[2])
counts = {}


def draw(below):
    global seed
    seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
    return (seed >> 33) % below


def pick(items):
    return items[draw(len(items))]


# Whoever runs a test of what others may do wants to know what was refused, by whom.
def count(what, outcome):
    key = what + " " + outcome
    counts[key] = counts.get(key, 0) + 1


def ask(what, message, wait=True):
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(5)
    try:
        client.connect(SOCKET)
        client.sendall(message)
        if wait:
            reply = client.recv(1 << 16)
            failed = b'"failed"' in reply
            count(what, "refused" if failed else "done" if reply else "dropped")
            if what == "status" and VICTIM.encode() in reply:
                count("victim", "told")
    except OSError as error:
        count(what, "errno %d" % (error.errno or 0))
    finally:
        client.close()


def request(order):
    return json.dumps(order).encode() + b"\n"


def a_set():
    own = PATH + "/" + pick(NAMES)
    front = pick([own, VICTIM, "/system.slice", "/", "/user.slice/../..", PATH])
    behind = [pick([own, VICTIM, "/user.slice"]) for _ in range(draw(4))]
    if draw(20) == 0:
        behind = [own] * 1200
    ask("set", request({"set": {"front": [front], "visible": [], "behind": behind}}))


def a_release():
    ask("release", b'"release"\n')


def a_status():
    ask("status", b'"status"\n')


def nonsense():
    length = draw(200)
    ask("nonsense", bytes(draw(256) for _ in range(length)), wait=False)


def crowd():
    clients = []
    for _ in range(40):
        client = socket.socket(socket.AF_UNIX)
        client.setblocking(False)
        try:
            client.connect(SOCKET)
        except OSError:
            pass
        clients.append(client)
    for client in clients:
        client.close()


def flood():
    for _ in range(100):
        ask("flood", b'"status"\n')


def a_cgroup():
    path = OWN + "/" + pick(NAMES)
    try:
        os.mkdir(path)
        count("cgroup", "made")
    except OSError:
        pass


def no_cgroup():
    try:
        os.rmdir(OWN + "/" + pick(NAMES))
    except OSError:
        pass


def deep():
    here = os.open(OWN, os.O_RDONLY)
    name = "app-" + "s" * 240 + ".slice"
    for _ in range(20):
        try:
            os.mkdir(name, dir_fd=here)
        except OSError:
            pass
        try:
            below = os.open(name, os.O_RDONLY, dir_fd=here)
        except OSError:
            break
        os.close(here)
        here = below
    os.close(here)


def many():
    for number in range(200):
        path = OWN + "/app-many-%d.slice" % number
        try:
            os.mkdir(path)
            os.setxattr(path, FOCUS, b"-1")
        except OSError:
            pass


def fewer():
    for number in range(200):
        try:
            os.rmdir(OWN + "/app-many-%d.slice" % number)
        except OSError:
            pass


def focus():
    try:
        os.setxattr(OWN + "/" + pick(NAMES), FOCUS, pick([b"-1", b"1000", b"", b"x" * 100]))
        count("focus", "set")
    except OSError:
        pass


def no_controllers():
    try:
        with open(OWN + "/cgroup.subtree_control", "w") as file:
            file.write(pick(["-io", "-memory", "+io", "+memory"]))
    except OSError:
        pass


def theirs():
    for path in ["/sys/fs/cgroup" + VICTIM + "/memory.low",
                 "/sys/fs/cgroup" + VICTIM + "/cgroup.procs",
                 "/sys/block/simflash0/queue/iosched/foreground"]:
        try:
            with open(path, "w") as file:
                file.write("0")
            count("theirs", "written")
        except OSError:
            pass


# Takes the disk's time and moves few bytes, so that it looks slow.
def slow_write():
    try:
        file = os.open("/mnt/hostile/slow", os.O_WRONLY | os.O_CREAT | os.O_DSYNC, 0o600)
        os.pwrite(file, bytes(4096), 4096 * draw(256))
        os.close(file)
        count("slow", "written")
    except OSError as error:
        count("slow", "errno %d" % (error.errno or 0))


# Lines and orders to the terminal in names that root may print.
def named():
    name = "x\n   Would help: sudo x\x1b[2J\x9b\u202e"
    with open("/proc/self/comm", "w") as file:
        file.write(name)
    open("/mnt/hostile/" + pick(["a", "b"]) + name, "w").close()
    counts["named"] = counts.get("named", 0) + 1


held = []


def lock():
    for directory in ["/run/frontrow", "/run/frontrowd"]:
        for name in os.listdir(directory) if os.path.isdir(directory) else []:
            try:
                file = os.open(directory + "/" + name, os.O_RDONLY)
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held.append(file)
                count("lock", name)
            except OSError:
                pass


ACTIONS = [a_set, a_set, a_set, a_release, a_status, nonsense, crowd, a_cgroup, a_cgroup,
           no_cgroup, focus, focus, focus, no_controllers, theirs, lock, slow_write, named]
RARE = [flood, deep, many, fewer]

end = time.monotonic() + seconds
while time.monotonic() < end:
    pick(RARE if draw(40) == 0 else ACTIONS)()
    time.sleep(0.05)
print(json.dumps(counts))
