//! Compositors that tell by sockets of their own, pretended: they say what the real ones' sources do.

use foreground::focus::{Awaited, Event, Focus, Hyprland, Niri, Screen, Source, Sway};
use foreground::{Process, Window};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use tempfile::TempDir;

fn window(process: Process, names: &[&str]) -> Window {
    Window {
        process: Some(process),
        names: names.iter().map(|it| (*it).to_owned()).collect(),
    }
}

fn beside(screen: &Screen) -> Vec<(Option<Process>, u8)> {
    let beside = screen.beside.iter();
    beside.map(|it| (it.window.process, it.percent)).collect()
}

fn next(source: &mut dyn Source) -> Screen {
    match source.wait(&Awaited::default()).unwrap() {
        Event::Screen(screen) => screen,
        Event::Other => panic!("nothing else is awaited"),
    }
}

/// A directory with a socket in it.
fn listen(directory: &TempDir, name: &str) -> UnixListener {
    UnixListener::bind(directory.path().join(name)).unwrap()
}

/// What a compositor says when it is asked.
type Said = Arc<Mutex<Value>>;

fn message(kind: u32, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let head = [body.len() as u32, kind].map(u32::to_ne_bytes).concat();
    [b"i3-ipc".as_slice(), &head, body.as_bytes()].concat()
}

/// Answers with the tree; the connection that subscribes is given back.
fn sway(listener: UnixListener, tree: Said) -> thread::JoinHandle<UnixStream> {
    let (asking, _) = listener.accept().unwrap();
    let (events, _) = listener.accept().unwrap();
    thread::spawn(move || {
        serve_sway(asking, tree);
    });
    thread::spawn(move || {
        let mut head = [0; 14];
        let mut events = events;
        events.read_exact(&mut head).unwrap();
        let mut body = vec![0; usize::from(head[6])];
        events.read_exact(&mut body).unwrap();
        assert!(body.starts_with(br#"["window","workspace""#));
        events
            .write_all(&message(2, &json!({"success": true})))
            .unwrap();
        events
    })
}

fn serve_sway(mut asking: UnixStream, tree: Said) {
    let mut head = [0; 14];
    while asking.read_exact(&mut head).is_ok() {
        assert_eq!(head[10], 4, "the tree is asked for");
        let tree = tree.lock().unwrap().clone();
        asking.write_all(&message(4, &tree)).unwrap();
    }
}

fn rect(x: i32, width: i32) -> Value {
    json!({"x": x, "y": 0, "width": width, "height": 100})
}

fn tree(focused: u32) -> Value {
    let view = |pid: u32, x: i32, width: i32| {
        json!({"type": "con", "pid": pid, "app_id": "foot", "shell": "xdg_shell", "visible": true,
               "focused": pid == focused, "rect": rect(x, width), "nodes": [], "floating_nodes": []})
    };
    let mut hidden = view(13, 0, 300);
    hidden["visible"] = json!(false);
    let mut x11 = view(14, 200, 50);
    x11["app_id"] = Value::Null;
    x11["shell"] = json!("xwayland");
    x11["window_properties"] = json!({"class": "Game", "instance": "game.bin"});
    json!({"type": "root", "rect": rect(0, 300), "nodes": [
        {"type": "output", "rect": rect(0, 200), "nodes": [
            {"type": "workspace", "rect": rect(0, 200), "focused": focused == 0,
             "nodes": [view(11, 0, 100), view(12, 100, 100)], "floating_nodes": []}]},
        {"type": "output", "rect": rect(200, 100), "nodes": [
            {"type": "workspace", "rect": rect(200, 100), "focused": false,
             "nodes": [hidden], "floating_nodes": [x11]}]},
    ]})
}

#[test]
fn sway_tells_each_windows_process_and_place() {
    let directory = tempfile::tempdir().unwrap();
    let listener = listen(&directory, "sway");
    let said: Said = Arc::new(Mutex::new(tree(11)));
    let served = Arc::clone(&said);
    let server = thread::spawn(move || sway(listener, served).join().unwrap());
    let mut session = Sway::connect_to(&directory.path().join("sway"))
        .unwrap()
        .unwrap();
    let mut events = server.join().unwrap();
    assert_eq!(session.compositor(), Some(std::process::id()));
    let screen = session.now().unwrap();
    assert_eq!(
        screen.focus,
        Focus::Window(window(Process::Pid(11), &["foot"]))
    );
    let game = Some(Process::ClaimedPid(14));
    assert_eq!(beside(&screen), [(Some(Process::Pid(12)), 33), (game, 16)]);
    // A new title is no news, and half an event is none yet.
    *said.lock().unwrap() = tree(14);
    events
        .write_all(&message(0x8000_0003, &json!({"change": "title"})))
        .unwrap();
    let focus = message(0x8000_0003, &json!({"change": "focus"}));
    events.write_all(&focus[..9]).unwrap();
    events.write_all(&focus[9..]).unwrap();
    let focus = window(Process::ClaimedPid(14), &["Game"]);
    assert_eq!(next(&mut session).focus, Focus::Window(focus));
    *said.lock().unwrap() = tree(0);
    events
        .write_all(&message(0x8000_0000, &json!({"change": "focus"})))
        .unwrap();
    assert_eq!(next(&mut session).focus, Focus::Nobody);
    drop(events);
    assert!(session.wait(&Awaited::default()).is_err());
    assert!(Sway::connect_to(Path::new("/nowhere")).unwrap().is_none());
}

fn client(pid: u32, workspace: i64, at: [i32; 2], size: [i32; 2]) -> Value {
    json!({"address": format!("0x{pid:x}"), "mapped": true, "hidden": false, "at": at, "size": size,
           "workspace": {"id": workspace, "name": ""}, "floating": false, "class": format!("app{pid}"),
           "initialClass": "first", "pid": pid, "xwayland": false, "pinned": false, "fullscreen": 0,
           "focusHistoryID": pid})
}

#[test]
fn hyprland_tells_each_windows_process_and_place() {
    let directory = tempfile::tempdir().unwrap();
    let (asked, telling) = (
        listen(&directory, ".socket.sock"),
        listen(&directory, ".socket2.sock"),
    );
    let mut floating = client(3, 1, [50, 0], [100, 50]);
    floating["floating"] = json!(true);
    let mut x11 = client(4, 2, [200, 0], [100, 100]);
    x11["xwayland"] = json!(true);
    let monitors = json!([
        {"x": 0, "y": 0, "width": 400, "height": 200, "scale": 2.0, "transform": 0,
         "activeWorkspace": {"id": 1}, "specialWorkspace": {"id": 0}},
        {"x": 200, "y": 0, "width": 100, "height": 100, "scale": 1.0, "transform": 1,
         "activeWorkspace": {"id": 2}, "specialWorkspace": {"id": 0}},
    ]);
    let tiled = client(1, 1, [0, 0], [100, 100]);
    let clients = json!([
        floating,
        x11,
        tiled,
        client(2, 1, [100, 0], [100, 100]),
        client(5, 7, [0, 0], [200, 100])
    ]);
    let active: Said = Arc::new(Mutex::new(tiled));
    let answers = Arc::clone(&active);
    thread::spawn(move || {
        for stream in asked.incoming() {
            let mut stream = stream.unwrap();
            let mut what = [0; 64];
            let length = stream.read(&mut what).unwrap();
            let reply = match &what[..length] {
                b"j/clients" => clients.to_string(),
                b"j/monitors" => monitors.to_string(),
                b"j/activewindow" => answers.lock().unwrap().to_string(),
                other => panic!("it is asked for {other:?}"),
            };
            stream.write_all(reply.as_bytes()).unwrap();
        }
    });
    let mut session = Hyprland::connect_to(directory.path()).unwrap().unwrap();
    let (mut events, _) = telling.accept().unwrap();
    let screen = session.now().unwrap();
    let focused = window(Process::Pid(1), &["app1", "first"]);
    assert_eq!(screen.focus, Focus::Window(focused));
    // Half of the floating one's 5000 pixels would be the focused app's, half the other tile's.
    let known = [(2, 25), (3, 16)].map(|(pid, percent)| (Some(Process::Pid(pid)), percent));
    let x11 = (Some(Process::ClaimedPid(4)), 33);
    // Lower ones first, which had the focus before the others.
    assert_eq!(beside(&screen), [x11, known[0], known[1]]);
    *active.lock().unwrap() = json!({});
    events
        .write_all(b"windowtitle>>1\nactivewindow>>,\nactivewin")
        .unwrap();
    assert_eq!(next(&mut session).focus, Focus::Nobody);
    *active.lock().unwrap() = client(2, 1, [0, 0], [1, 1]);
    events.write_all(b"dowv2>>2\n").unwrap();
    let focused = window(Process::Pid(2), &["app2", "first"]);
    assert_eq!(next(&mut session).focus, Focus::Window(focused));
}

#[test]
fn niri_tells_each_windows_process_and_what_is_surely_visible() {
    let directory = tempfile::tempdir().unwrap();
    let listener = listen(&directory, "niri");
    let win = |id: u64, workspace: u64, column: u64, focused: bool| {
        json!({"id": id, "title": "t", "app_id": format!("app{id}"), "pid": 100 + id,
               "workspace_id": workspace, "is_focused": focused,
               "layout": {"pos_in_scrolling_layout": [column, 1], "tile_size": [50.0, 50.0],
                          "tile_pos_in_workspace_view": null}})
    };
    let mut old = win(9, 2, 1, false);
    old.as_object_mut().unwrap().remove("layout");
    let workspace = |id: u64, output: &str, active: bool, window: Option<u64>| {
        json!({"id": id, "output": output, "is_active": active, "is_focused": id == 1,
               "active_window_id": window})
    };
    let begin = [
        json!({"WorkspacesChanged": {"workspaces": [
            workspace(1, "A", true, Some(1)), workspace(2, "B", true, Some(9)),
            workspace(3, "A", false, Some(4))]}}),
        json!({"WindowsChanged": {"windows": [
            win(1, 1, 1, true), win(2, 1, 1, false), win(3, 1, 2, false), win(4, 3, 1, false), old]}}),
    ];
    let outputs = json!({"Ok": {"Outputs": {
        "A": {"logical": {"x": 0, "y": 0, "width": 100, "height": 100}},
        "B": {"logical": {"x": 100, "y": 0, "width": 100, "height": 100}},
        "off": {"logical": null}}}});
    let (told, events) = std::sync::mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = String::new();
            BufReader::new(stream.try_clone().unwrap())
                .read_line(&mut asked)
                .unwrap();
            match asked.trim() {
                "\"EventStream\"" => {
                    let lines = begin
                        .iter()
                        .map(Value::to_string)
                        .collect::<Vec<_>>()
                        .join("\n");
                    stream.write_all(b"{\"Ok\":\"Handled\"}\n").unwrap();
                    stream.write_all((lines + "\n").as_bytes()).unwrap();
                    told.send(stream).unwrap();
                }
                "\"Outputs\"" => stream
                    .write_all((outputs.to_string() + "\n").as_bytes())
                    .unwrap(),
                other => panic!("it is asked for {other}"),
            }
        }
    });
    let mut session = Niri::connect_to(&directory.path().join("niri"))
        .unwrap()
        .unwrap();
    let mut events: UnixStream = events.recv().unwrap();
    let mut says = |session: &mut Niri, event: Value| {
        events
            .write_all((event.to_string() + "\n").as_bytes())
            .unwrap();
        next(session)
    };
    let focus = |id: u32| Focus::Window(window(Process::Pid(100 + id), &[&format!("app{id}")]));
    let screen = session.now().unwrap();
    assert_eq!(screen.focus, focus(1));
    // Below it in its column, and on the other monitor. The next column may be out of sight.
    let pid = |pid: u32| Some(Process::Pid(pid));
    assert_eq!(beside(&screen), [(pid(102), 12), (pid(109), 50)]);
    let screen = says(&mut session, json!({"WindowFocusChanged": {"id": 3}}));
    assert_eq!(
        (&screen.focus, beside(&screen)),
        (&focus(3), vec![(pid(109), 50)])
    );
    let screen = says(&mut session, json!({"WindowFocusChanged": {"id": null}}));
    assert_eq!(screen.focus, Focus::Nobody);
    let opened = json!({"WindowOpenedOrChanged": {"window": win(5, 1, 3, true)}});
    assert_eq!(says(&mut session, opened).focus, focus(5));
    let screen = says(
        &mut session,
        json!({"WorkspaceActivated": {"id": 3, "focused": true}}),
    );
    assert_eq!(beside(&screen).len(), 2);
    let screen = says(&mut session, json!({"WindowClosed": {"id": 5}}));
    assert_eq!(screen.focus, Focus::Nobody);
    // Its last event and its end arrive together.
    let last = json!({"WindowFocusChanged": {"id": 2}}).to_string() + "\n";
    events.write_all(last.as_bytes()).unwrap();
    drop(events);
    assert_eq!(next(&mut session).focus, focus(2));
    assert!(session.wait(&Awaited::default()).is_err());
}
