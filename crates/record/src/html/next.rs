//! What a reader can do next.

use crate::ResultFile;
use crate::command::ON_ONES_OWN;
use maud::{Markup, html};

/// A command, and what it does.
type Step = (&'static str, &'static str);

const MEASURE: Step = (
    "frontrow bench /home/me --workload m1 --out before.json",
    "Measures the same on your own disk, before and after",
);
const DOCTOR: Step = (
    "sudo frontrow doctor --seconds 60",
    "Says who waits on your machine, and for whom; it changes nothing",
);
const ENABLE: Step = (
    "sudo frontrow sched enable /home",
    "Gives your disk the scheduler, and says how to undo it",
);

fn steps(experiment: &str) -> [Step; 2] {
    match experiment {
        "launch" | "resume" | "programs" | "packages" => [
            (
                "frontrow launch bench -- firefox",
                "Compares an app's start with and without it, on your machine",
            ),
            (
                "frontrow launch install firefox.desktop",
                "Starts that app so from now on; --remove undoes it",
            ),
        ],
        "janusd" | "fragments" | "fasttrack-janusd" => [
            (
                "frontrow defrag --check ~/Photos",
                "Says whether fragments slow these files down; it moves nothing",
            ),
            DOCTOR,
        ],
        ON_ONES_OWN => [
            ENABLE,
            (
                "frontrow bench compare before.json after.json --html compare.html",
                "Puts two runs side by side",
            ),
        ],
        name if name.starts_with("fasttrack")
            || ["foreground", "split-view", "traces"].contains(&name) =>
        {
            [
                (
                    "sudo systemctl enable --now frontrowd",
                    "Puts the app with the focus in front; disable --now undoes it",
                ),
                DOCTOR,
            ]
        }
        _ => [MEASURE, ENABLE],
    }
}

/// Section with the reader's next steps.
pub fn section(result: &ResultFile) -> Markup {
    next(&steps(&result.experiment))
}

/// Section with these next steps: a command, and what it does.
pub fn next(steps: &[(&str, &str)]) -> Markup {
    html! {
        section {
            h2 { "What to do next" }
            @for (command, words) in steps {
                p.step { (words) ":" }
                (super::command_line(command, words))
            }
        }
    }
}
