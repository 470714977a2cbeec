"""Moves the focus among apps of a real compositor, and compares what `frontrow fg follow --explain` says.

As an ordinary user of a systemd of its own: session.py COMPOSITOR CHANGES PROGRAM. It prints one line of
JSON: changes, rightly told ones, wrong ones, and the slowest in milliseconds.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time

COMPOSITOR, CHANGES, PROGRAM = sys.argv[1], int(sys.argv[2]), sys.argv[3]
RUNTIME = os.environ["XDG_RUNTIME_DIR"]
UUID = "7a3bcd12-0d1e-4b0c-8f9a-0123456789ab"
ENTRY = os.path.expanduser("~/.local/share/applications")
IS_X11 = COMPOSITOR in ("openbox", "icewm", "xfwm4", "kwin_x11")
# The names of windows, the unit, its slice, whether it is an X11 client, and whether it has pids of its own.
APPS = [
    ("foot", "app-desk-foot-11.scope", "app.slice", False, False),
    ("XTerm", "app-gnome-xterm-12.scope", "app.slice", True, False),
    ("org.test.Pak", "app-flatpak-org.test.Pak-13.scope", "app.slice", False, False),
    ("org.test.Inner", "app-flatpak-org.test.Inner-14.scope", "app.slice", True, True),
    ("mail_mail", f"snap.mail.mail-{UUID}.scope", "app.slice", False, False),
    ("note", "app-desk-note-15.scope", "app-graphical.slice", False, False),
    ("steam_app_570", "app-steam-app570-16.scope", "app.slice", True, False),
    ("google-chrome", "app-com.google.Chrome-17.scope", "app.slice", False, False),
    ("nobody.knows", "helper-18.scope", "session.slice", False, False),
]


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, timeout=60, **more).stdout


def until(what, is_so):
    for _ in range(1200):
        if is_so():
            return
        time.sleep(0.05)
    sys.exit(f"{COMPOSITOR}: {what} does not come to be")


def set_variables(**variables):
    os.environ.update(variables)
    run("systemctl", "--user", "set-environment", *(f"{k}={v}" for k, v in variables.items()))


def service(name, *words, **variables):
    settings = [f"--setenv={key}={value}" for key, value in variables.items()]
    run("systemctl", "--user", "reset-failed", name)
    run("systemd-run", "--user", "--slice=session.slice", f"--unit={name}", *settings, *words)


def new_sockets(before, begin):
    names = {it for it in os.listdir(RUNTIME) if it.startswith(begin) and not it.endswith(".lock")}
    return sorted(names - before)


def displays():
    return {it[1:] for it in os.listdir("/tmp/.X11-unix")} if os.path.isdir("/tmp/.X11-unix") else set()


def start_compositor():
    before = set(os.listdir(RUNTIME))
    displays_before = displays()
    quiet = {"LIBGL_ALWAYS_SOFTWARE": "1"}
    wlroots = {"WLR_BACKENDS": "headless", "WLR_RENDERER": "pixman", "WLR_LIBINPUT_NO_DEVICES": "1"}
    if COMPOSITOR == "kwin":
        words = ["kwin_wayland", "--virtual", "--no-lockscreen", "--xwayland"]
        service("desk-kwin", *words, KWIN_COMPOSE="Q", XDG_CURRENT_DESKTOP="KDE", **quiet)
        set_variables(XDG_CURRENT_DESKTOP="KDE")
    elif COMPOSITOR == "gnome":
        # Unsafe, for windows get the focus by its interpreter.
        words = ["gnome-shell", "--headless", "--unsafe-mode", "--virtual-monitor", "1280x720"]
        service("desk-gnome", *words, XDG_CURRENT_DESKTOP="GNOME", XDG_SESSION_TYPE="wayland", **quiet)
        set_variables(XDG_CURRENT_DESKTOP="GNOME")
    elif IS_X11:
        service("desk-x", "Xvfb", ":7", "-screen", "0", "1024x768x24")
        until("a server", lambda: "7" in displays())
        set_variables(DISPLAY=":7")
        service("desk-wm", COMPOSITOR, DISPLAY=":7")
        until("a window manager", lambda: "window id" in run("xprop", "-root", "_NET_SUPPORTING_WM_CHECK"))
        return
    else:
        config = tempfile.NamedTemporaryFile("w", suffix=".conf", delete=False)
        config.write("exec systemctl --user set-environment DISPLAY=$DISPLAY SWAYSOCK=$SWAYSOCK\n")
        config.close()
        words = ["sway", "-c", config.name] if COMPOSITOR == "sway" else [COMPOSITOR]
        service(f"desk-{COMPOSITOR}", *words, **wlroots, **quiet)
    until("a display", lambda: new_sockets(before, "wayland-"))
    set_variables(WAYLAND_DISPLAY=new_sockets(before, "wayland-")[0])
    if COMPOSITOR == "sway":
        until("sway's socket", lambda: new_sockets(before, "sway-ipc"))
        set_variables(SWAYSOCK=f"{RUNTIME}/{new_sockets(before, 'sway-ipc')[0]}")
    until("an X server", lambda: displays() - displays_before)
    set_variables(DISPLAY=":" + sorted(displays() - displays_before)[0])
    if COMPOSITOR == "kwin":
        until("KWin on the bus", lambda: "org.kde.KWin" in run("busctl", "--user", "list"))
    if COMPOSITOR == "gnome":
        until("the key to its X server", lambda: new_sockets(before, ".mutter-Xwaylandauth"))
        set_variables(XAUTHORITY=f"{RUNTIME}/{new_sockets(before, '.mutter-Xwaylandauth')[0]}")
        until("the shell", lambda: "true" in run(*gnome("Main.overview.hide(); 1")))


def start_app(name, unit, slice_name, x11, own_pids):
    if x11 or IS_X11:
        words = ["xterm", "-class", name, "-name", name, "-e", "sleep", "inf"]
    else:
        words = ["foot", f"--app-id={name}", "sleep", "inf"]
    if own_pids:
        words = ["unshare", "--user", "--map-current-user", "--pid", "--fork", "--mount-proc", *words]
    scope = ["systemd-run", "--user", "--scope", "-q", f"--slice={slice_name}", f"--unit={unit}", *words]
    return subprocess.Popen(scope, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kwin_script(name, text):
    path = f"{RUNTIME}/{name}.js"
    with open(path, "w") as file:
        file.write(text)
    call = ["busctl", "--user", "call", "org.kde.KWin"]
    run(*call, "/Scripting", "org.kde.kwin.Scripting", "unloadScript", "s", name)
    number = run(*call, "/Scripting", "org.kde.kwin.Scripting", "loadScript", "ss", path, name).split()[-1]
    return [*call, f"/Scripting/Script{number}", "org.kde.kwin.Script", "run"]


def gnome(text):
    return ["busctl", "--user", "call", "org.gnome.Shell", "/org/gnome/Shell", "org.gnome.Shell", "Eval", "s", text]


def mover(name, x11):
    """What moves the focus to a window, prepared as far as can be."""
    if COMPOSITOR == "sway":
        kind = "class" if x11 else "app_id"
        return ["swaymsg", f'[{kind}="^{name}$"]', "focus"]
    if COMPOSITOR == "kwin":
        return kwin_script("desk-mover", f"""
            for (const window of workspace.windowList()) {{
                if (String(window.resourceClass).toLowerCase() == "{name.lower()}") {{
                    workspace.activeWindow = window;
                }}
            }}""")
    if COMPOSITOR == "gnome":
        return gnome(f"""global.get_window_actors().map(it => it.meta_window)
            .filter(it => it.get_wm_class() == "{name}").forEach(it => it.activate(global.get_current_time()))""")
    if IS_X11:
        window = run("xdotool", "search", "--onlyvisible", "--class", f"^{name}$").split()[-1]
        return ["xdotool", "windowactivate", window]
    return ["wlrctl", "toplevel", "focus", f"app_id:{name}"]


class Told:
    """Lines of `frontrow fg follow --explain --json`, each with the time of its arrival."""

    def __init__(self):
        words = [PROGRAM, "fg", "follow", "--explain", "--json"]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=sys.stderr, text=True)
        self.lines = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), json.loads(line)))

    def cpu_ms(self):
        """Time on a CPU until now, by the scheduler's account."""
        with open(f"/proc/{self.process.pid}/schedstat") as file:
            return int(file.read().split()[0]) / 1e6


def units_of(told):
    window = told["foreground"]
    return [it.split("/")[-1] for it in window["units"]] if window else None


def main():
    os.makedirs(ENTRY, exist_ok=True)
    for entry in ("google-chrome", "com.google.Chrome"):
        with open(f"{ENTRY}/{entry}.desktop", "w") as file:
            file.write("[Desktop Entry]\nExec=/usr/bin/google-chrome-stable %U\n")
    start_compositor()
    running = []
    for app in APPS:
        running.append(start_app(*app))
        time.sleep(1.5)
    ended = [app[0] for app, it in zip(APPS, running) if it.poll() is not None]
    if ended:
        sys.exit(f"{COMPOSITOR}: {ended} did not start")
    if COMPOSITOR == "gnome":
        count = gnome("global.get_window_actors().length")
        until("each app's window", lambda: f'"{len(APPS)}"' in run(*count))
        # It keeps the focus where it is when a program starts that nobody has clicked on.
        run(*mover(APPS[-1][0], False))
    told = Told()
    until("the first window", lambda: told.lines)
    time.sleep(1)
    first = told.lines[-1][1]
    chance = random.Random(7)
    right, wrong, delays_ms, current = 0, [], [], units_of(first)
    # The last window has the focus already, and its process no unit of an app.
    if current != []:
        wrong.append({"first": first})
    before = None
    cpu_ms = told.cpu_ms()
    for number in range(CHANGES):
        app = chance.choice([it for it in APPS if it != before])
        before = app
        name, unit, slice_name, x11, _ = app
        wanted = [unit] if slice_name != "session.slice" else []
        words = mover(name, x11)
        count = len(told.lines)
        began = time.monotonic()
        run(*words)
        deadline = began + 60
        while time.monotonic() < deadline:
            if any(units_of(line) == wanted for _, line in told.lines[count:]):
                break
            time.sleep(0.001)
        time.sleep(0.05)
        news = told.lines[count:]
        hits = [at for at, line in news if units_of(line) == wanted]
        # What moves below the window with the focus is told, too, until the focus moves.
        fits = lambda at, units: units in (wanted, None) or units == current and at < hits[0]
        if hits and all(fits(at, units_of(line)) for at, line in news):
            right += 1
            delays_ms.append(1000 * (hits[0] - began))
        else:
            wrong.append({"wanted": wanted, "name": name, "told": [line for _, line in news]})
        current = wanted
    cpu_ms = told.cpu_ms() - cpu_ms
    told.process.terminate()
    code = told.process.wait(20)
    for process in running:
        process.terminate()
    run("sh", "-c", "systemctl --user stop 'desk-*' '*-1[0-9].scope' 'snap.*.scope'")
    by = told.lines[-1][1]["by"]
    print(json.dumps({"compositor": COMPOSITOR, "by": by, "changes": CHANGES, "right": right, "wrong": wrong[:3],
                      "wrong_count": len(wrong), "median_ms": round(statistics.median(delays_ms or [0])),
                      "slowest_ms": round(max(delays_ms, default=0)), "code": code,
                      "cpu_ms_a_change": round(cpu_ms / CHANGES, 2),
                      "visible": sum(bool(line["visible"]) for _, line in told.lines)}))


main()
