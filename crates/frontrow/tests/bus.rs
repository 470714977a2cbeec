//! The daemon on a D-Bus of its own, whose other users are `dbus-send`.

use crate::flood::flood;
use crate::running::{Daemon, GAME, NOBODY, command, fg, path, status, until};
use crate::system::System;
use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const POLICY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../packaging/org.frontrow.Foreground1.conf"
);

/// A bus as strict as the system's: nobody may own or call what no policy allows.
struct Bus(Child);

impl Bus {
    /// With what a package brings, or without.
    fn start(system: &System, policy: bool) -> Self {
        let socket = system.root().join("run/dbus/system_bus_socket");
        fs::create_dir_all(socket.parent().unwrap()).unwrap();
        // Another user's `dbus-send` has to get there.
        fs::set_permissions(system.root(), Permissions::from_mode(0o755)).unwrap();
        let mut policies = String::new();
        if policy {
            let uid = rustix::process::getuid().as_raw();
            policies = format!(
                r#"<include>{POLICY}</include>
                <policy user="{uid}"><allow own="org.frontrow.Foreground1"/></policy>"#
            );
        }
        let config = format!(
            r#"<busconfig><type>system</type><listen>unix:path={}</listen><auth>EXTERNAL</auth>
            <policy context="default">
              <allow user="*"/><deny own="*"/><deny send_type="method_call"/>
              <allow send_type="signal"/><allow send_requested_reply="true"/>
              <allow receive_type="method_call"/><allow receive_requested_reply="true"/>
              <allow receive_type="signal"/>
              <allow send_destination="org.freedesktop.DBus"/>
            </policy>{policies}</busconfig>"#,
            socket.display()
        );
        system.write("bus.conf", &config);
        let config = system.root().join("bus.conf");
        let bus = Command::new("dbus-daemon")
            .args(["--nofork", "--nosyslog", "--config-file"])
            .arg(config)
            .spawn();
        let bus =
            Bus(bus.expect("these tests need dbus-daemon (Debian: apt-get install dbus-daemon)"));
        until(|| UnixStream::connect(&socket).is_ok());
        bus
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Far above what a busy machine takes, in milliseconds.
const LONGEST_REPLY: &str = "--reply-timeout=600000";

fn call(system: &System, method: &str, arguments: &[&str]) -> Command {
    let options = ["--print-reply=literal", LONGEST_REPLY];
    send(system, &options, method, arguments)
}

fn send(system: &System, options: &[&str], method: &str, arguments: &[&str]) -> Command {
    let socket = system.root().join("run/dbus/system_bus_socket");
    let mut command = Command::new("dbus-send");
    command
        .arg(format!("--bus=unix:path={}", socket.display()))
        .args(options)
        .arg("--dest=org.frontrow.Foreground1")
        .args(["/org/frontrow/Foreground1", method])
        .args(arguments);
    command
}

/// What came back, or the error.
fn said(mut command: Command) -> Result<String, String> {
    let output = command
        .output()
        .expect("these tests need dbus-send (Debian: apt-get install dbus-bin)");
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap()),
        false => Err(String::from_utf8(output.stderr).unwrap()),
    }
}

const SET: &str = "org.frontrow.Foreground1.SetForeground";
const STATUS: &str = "org.frontrow.Foreground1.Status";
const RELEASE: &str = "org.frontrow.Foreground1.Release";

#[test]
fn a_desktop_may_call_a_method_instead_of_running_a_command() {
    let system = System::new();
    let _bus = Bus::start(&system, true);
    let _daemon = Daemon::start(&system);
    said(call(&system, SET, &["uint32:7"])).unwrap();
    assert_eq!(system.list("foreground"), path(GAME));
    let text = said(call(&system, STATUS, &[])).unwrap();
    let told: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
    assert_eq!(told["front"][0], path(GAME));
    said(call(&system, RELEASE, &[])).unwrap();
    assert_eq!(system.list("foreground"), "none");
    let introspect = "org.freedesktop.DBus.Introspectable.Introspect";
    let description = said(call(&system, introspect, &[])).unwrap();
    assert!(description.contains("SetForeground"), "{description}");
    said(call(&system, "org.freedesktop.DBus.Peer.Ping", &[])).unwrap();
}

#[test]
fn what_is_not_done_has_an_error_with_a_sentence() {
    let system = System::new();
    let _bus = Bus::start(&system, true);
    let _daemon = Daemon::start(&system);
    let refused = |method: &str, arguments: &[&str]| {
        said(call(&system, method, arguments)).expect_err("it was done")
    };
    let unknown = refused(SET, &["uint32:99"]);
    assert!(unknown.contains("InvalidArgs"), "{unknown}");
    assert!(unknown.contains("neither a process nor"), "{unknown}");
    for (method, arguments) in [
        (SET, ["string:7"]),
        ("org.frontrow.Foreground1.Set", ["uint32:7"]),
    ] {
        let refused = refused(method, &arguments);
        assert!(refused.contains("UnknownMethod"), "{refused}");
    }
    // Longer than anything that is understood: nobody answers, and the next one is served.
    let long = format!("string:{}", "x".repeat(100_000));
    said(send(&system, &["--type=method_call"], SET, &[&long])).unwrap();
    said(call(&system, SET, &["uint32:7"])).unwrap();
}

#[test]
fn an_ordinary_user_has_a_say_in_no_app_of_roots_by_the_bus_either() {
    // Only root can be somebody else. The rule itself has a test that anybody can run.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let system = System::new();
    let _bus = Bus::start(&system, true);
    let _daemon = Daemon::start(&system);
    let mut nobody = call(&system, SET, &["uint32:7"]);
    nobody.uid(NOBODY);
    let refused = said(nobody).unwrap_err();
    assert!(refused.contains("AccessDenied"), "{refused}");
    assert!(refused.contains("not the one at the screen"), "{refused}");
    let mut nobody = call(&system, STATUS, &[]);
    nobody.uid(NOBODY);
    said(nobody).unwrap();
    assert_eq!(system.list("foreground"), "none");
}

/// Not the one who calls without end: `daemon`, as a bus lets in only users whom the system knows.
const OTHER: u32 = 1;

#[test]
fn a_user_who_uses_up_all_calls_of_the_bus_keeps_no_other_from_being_served() {
    // Only root can be somebody else.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let system = System::new();
    let _bus = Bus::start(&system, true);
    let _daemon = Daemon::start(&system);
    let (connected, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let flooded = thread::scope(|scope| {
        let hostile = scope.spawn(|| flood(&system, &connected, &stop));
        until(|| connected.load(Ordering::Relaxed));
        thread::sleep(Duration::from_secs(2));
        let served: Vec<_> = (0..20)
            .map(|_| {
                let mut other = call(&system, STATUS, &[]);
                other.uid(OTHER);
                said(other)
            })
            .collect();
        // Root, too, and by the socket.
        let root = said(call(&system, SET, &["uint32:7"]));
        let by_socket = status(&system);
        stop.store(true, Ordering::Relaxed);
        let flooded = hostile.join().unwrap();
        for served in served {
            served.unwrap_or_else(|error| panic!("{error} {flooded:?}"));
        }
        root.unwrap();
        assert_eq!(by_socket["front"][0], path(GAME));
        flooded
    });
    // The attack took place, as fast as this machine is.
    assert!(flooded.connections > 100, "{flooded:?}");
    assert!(flooded.calls > 500 && flooded.refused > 100, "{flooded:?}");
}

#[test]
fn the_daemon_works_the_same_when_the_bus_ends_or_refuses_it_and_hears_it_when_it_is_back() {
    for policy in [true, false] {
        let system = System::new();
        let bus = Bus::start(&system, policy);
        let mut daemon = command(&system, &["daemon"]);
        let mut daemon = Daemon(daemon.stderr(Stdio::piped()).spawn().unwrap());
        until(|| status(&system)["daemon"] == true);
        drop(bus);
        if policy {
            // It comes back, as after an update.
            let _bus = Bus::start(&system, policy);
            until(|| said(call(&system, STATUS, &[])).is_ok());
        }
        let set = fg(&system, &["set", "7"]);
        assert_eq!(set.code, 0, "{}", set.stderr);
        assert_eq!(system.list("foreground"), path(GAME));
        daemon.signal(rustix::process::Signal::TERM);
        assert_eq!(daemon.wait(), Some(0));
        let mut log = String::new();
        let stderr = daemon.0.stderr.take().unwrap();
        { stderr }.read_to_string(&mut log).unwrap();
        assert!(log.contains("no calls by D-Bus"), "{log}");
    }
}
