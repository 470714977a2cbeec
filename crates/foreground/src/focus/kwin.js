// SPDX-License-Identifier: GPL-2.0-only
// Tells `frontrow fg follow` of the windows, on the session's D-Bus: scripts reach no other. All goes as
// one text, as numbers may arrive there as one of several types. TELL is the bus's name of the process.

// Plasma 6 has other names than Plasma 5.
const six = workspace.windowList !== undefined;

function about(window) {
    const place = window.frameGeometry || window.geometry;
    return {
        pid: window.pid > 0 ? window.pid : null,
        // An X11 client says itself which process it is; the class of other windows has no X11 in its name.
        claimed: String(window).indexOf("X11") >= 0 || !six,
        // Not `resourceName`, which may be the program's: another app may be named so.
        names: [window.desktopFileName, window.resourceClass].map(String),
        furniture: window.desktopWindow || window.dock,
        x: place.x, y: place.y, width: place.width, height: place.height,
    };
}

function isHere(window) {
    const activities = window.activities || [];
    const isInActivity = activities.length == 0 || activities.indexOf(workspace.currentActivity) >= 0;
    if (window.minimized || !isInActivity || window.specialWindow && !window.desktopWindow) {
        return false;
    }
    const isOnDesktop = six ? window.desktops.indexOf(workspace.currentDesktop) >= 0
                            : window.desktop == workspace.currentDesktop;
    return window.onAllDesktops || isOnDesktop;
}

function tell() {
    const active = six ? workspace.activeWindow : workspace.activeClient;
    const windows = six ? workspace.stackingOrder : workspace.clientList();
    const size = workspace.virtualScreenSize;
    callDBus(TELL, "/org/frontrow/Focus1", "org.frontrow.Focus1", "Screen", JSON.stringify({
        focus: active ? about(active) : null,
        windows: windows.filter(isHere).slice(-64).map(about),
        width: size.width, height: size.height,
    }));
}

function watch(window) {
    for (const signal of ["minimizedChanged", "clientMinimized", "clientUnminimized", "desktopsChanged",
                          "interactiveMoveResizeFinished", "clientFinishUserMovedResized"]) {
        if (window[signal]) {
            window[signal].connect(tell);
        }
    }
}

for (const signal of ["windowActivated", "clientActivated", "windowRemoved", "clientRemoved",
                      "currentDesktopChanged"]) {
    if (workspace[signal]) {
        workspace[signal].connect(tell);
    }
}
(workspace.windowAdded || workspace.clientAdded).connect(watch);
(six ? workspace.windowList() : workspace.clientList()).forEach(watch);
tell();
