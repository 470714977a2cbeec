//! A headless Chromium that opens pages for tests, told what to do by the DevTools protocol.
//! The browser takes commands on its descriptor 3 and answers on its descriptor 4.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Names of the program in Debian (which `make test` installs) and elsewhere.
const PROGRAMS: [&str; 4] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
];

/// Set where the system has none of them.
const WITHOUT: &str = "FRONTROW_WITHOUT_BROWSER";

/// A browser that hangs is ended, and the test fails.
const LIMIT_S: &str = "300";

/// What finds faults in a page: an expression that gives a list of sentences.
const INSPECT: &str = include_str!("inspect.js");

pub struct Browser {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    last_id: u64,
    session: Value,
    /// What the page said on the console, and errors of the browser's own.
    messages: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// None where `make test` has found no browser to install.
    pub fn start() -> Option<Browser> {
        let found = PROGRAMS.into_iter().find(|name| is_in_path(name));
        if found.is_none() && std::env::var_os(WITHOUT).is_some() {
            return None;
        }
        let program = found.unwrap_or_else(|| panic!("none of {PROGRAMS:?} is installed"));
        let profile = tempfile::tempdir().unwrap();
        // Pages are this project's own and run no script, so root needs no sandbox.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 < /dev/null > /dev/null", "sh"])
            .args(["timeout", LIMIT_S, program, "--headless", "--no-sandbox"])
            .args([
                "--remote-debugging-pipe",
                "--disable-gpu",
                "--hide-scrollbars",
            ])
            .args(["--no-first-run", "--disable-dev-shm-usage"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let commands = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut browser = Browser {
            child,
            commands,
            answers,
            last_id: 0,
            session: Value::Null,
            messages: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        browser.session = browser.call("Target.attachToTarget", attach)["sessionId"].clone();
        for domain in ["Page", "Runtime", "Log", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Opens a page in a window of this many pixels.
    pub fn open(&mut self, page: &Path, width: u32) {
        self.resize(width);
        let url = format!("file://{}", page.display());
        self.call("Page.navigate", json!({ "url": url }));
        while self.ask("document.readyState") != "complete" {}
        self.ask("document.fonts.ready.then(() => 0)");
    }

    pub fn resize(&mut self, width: u32) {
        let size =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// `print` or `screen`, on a light or a dark background.
    pub fn show_as(&mut self, media: &str, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        let media = json!({ "media": media, "features": features });
        self.call("Emulation.setEmulatedMedia", media);
    }

    /// What is wrong with the page as it is shown now, in sentences.
    pub fn faults(&mut self) -> Vec<String> {
        let faults = self.ask(INSPECT);
        let faults = faults.as_array().expect("a list of faults").iter();
        let mut faults: Vec<String> = faults.map(|it| it.as_str().unwrap().to_owned()).collect();
        faults.append(&mut self.messages);
        faults
    }

    /// The value of an expression.
    pub fn ask(&mut self, expression: &str) -> Value {
        let question = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true,
        });
        let answer = self.call("Runtime.evaluate", question);
        assert!(answer["exceptionDetails"].is_null(), "{answer}");
        answer["result"]["value"].clone()
    }

    pub fn press_tab(&mut self) {
        for kind in ["keyDown", "keyUp"] {
            let key =
                json!({ "type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9 });
            self.call("Input.dispatchKeyEvent", key);
        }
    }

    /// What a screen reader calls each picture.
    pub fn names_of_pictures(&mut self) -> Vec<String> {
        let tree = self.call("Accessibility.getFullAXTree", json!({}));
        let nodes = tree["nodes"].as_array().unwrap().iter();
        let pictures = nodes.filter(|it| {
            let role = it["role"]["value"].as_str().unwrap_or_default();
            it["ignored"] == false && matches!(role, "img" | "image")
        });
        pictures
            .map(|it| it["name"]["value"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// The whole page as a PNG.
    pub fn screenshot(&mut self, out: &Path) {
        let shot = self.call(
            "Page.captureScreenshot",
            json!({ "captureBeyondViewport": true }),
        );
        std::fs::write(out, decoded(shot["data"].as_str().unwrap())).unwrap();
    }

    /// The page as it is printed on A4: a PDF.
    pub fn print(&mut self, out: &Path) {
        let paper = json!({ "paperWidth": 8.27, "paperHeight": 11.69, "printBackground": true });
        let printed = self.call("Page.printToPDF", paper);
        std::fs::write(out, decoded(printed["data"].as_str().unwrap())).unwrap();
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": params });
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.commands
            .write_all(&bytes)
            .expect("the browser has ended");
        loop {
            let answer = self.next_message();
            if answer["id"] == self.last_id {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.note(&answer);
        }
    }

    fn next_message(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.answers.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser has ended");
        serde_json::from_slice(&bytes).unwrap()
    }

    fn note(&mut self, event: &Value) {
        let said = [
            "Runtime.consoleAPICalled",
            "Runtime.exceptionThrown",
            "Log.entryAdded",
        ];
        if said.iter().any(|it| event["method"] == *it) {
            self.messages.push(format!("console: {}", event["params"]));
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // `timeout` passes the signal on.
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
        self.child.wait().ok();
    }
}

fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|it| it.join(program).is_file())
}

/// Base64, as the protocol sends files.
fn decoded(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let digits: Vec<u8> = text.bytes().filter_map(digit).collect();
    let groups = digits.chunks(4).flat_map(|group| {
        let bits = group
            .iter()
            .fold(0u32, |bits, it| bits << 6 | u32::from(*it));
        let bits = bits << (6 * (4 - group.len()));
        let bytes = bits.to_be_bytes();
        bytes[1..group.len()].to_vec()
    });
    groups.collect()
}
