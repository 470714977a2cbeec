// SPDX-License-Identifier: GPL-2.0-only
// Tells `frontrow fg follow` whose window has the focus, on the session's D-Bus: scripts reach no
// other. The process goes as a text, as a number may arrive there as one of several types.

function tell(window) {
    if (window && window.pid > 0) {
        callDBus("org.frontrow.Foreground1", "/org/frontrow/Foreground1",
                 "org.frontrow.Foreground1", "SetForeground", String(window.pid));
    }
}

// The second is Plasma 5's name for it.
(workspace.windowActivated || workspace.clientActivated).connect(tell);
