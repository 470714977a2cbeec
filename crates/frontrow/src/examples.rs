//! An example of each command, which its help and its man page begin with.

use clap::Command;

/// Command lines, each of one command: the words up to the first that is none.
const EXAMPLES: [&str; 36] = [
    "frontrow age /mnt/phone --days 30",
    "frontrow bench /home/me --out before.json",
    "frontrow bench compare before.json after.json",
    "frontrow completions bash",
    "frontrow defrag --check ~/Photos",
    "frontrow doctor --seconds 60",
    "frontrow fg daemon",
    "frontrow fg follow",
    "frontrow fg release",
    "frontrow fg set 4711",
    "frontrow fg status",
    "frontrow iopro export --to perfetto --output trace.pftrace recording.iopro",
    "frontrow iopro record -- sqlite3 app.db 'insert into log values (1)'",
    "frontrow iopro report recording.iopro",
    "frontrow iopro top --system",
    "frontrow lab exec --policy frontrow --with fio -- fio --name=a --rw=write --size=16M",
    "frontrow lab list",
    "frontrow lab powercut --days 1 --points 200",
    "frontrow lab run qasio --workload m1 --load idle,writer --seeds 1 --out result",
    "frontrow lab shell --with fio,strace",
    "frontrow lab show qasio",
    "frontrow lab torture order --kernel 6.1",
    "frontrow launch firefox",
    "frontrow launch bench -- firefox",
    "frontrow launch calibrate",
    "frontrow launch install firefox.desktop",
    "frontrow launch plan -- firefox",
    "frontrow launch record -- firefox",
    "frontrow replay phone.trace",
    "frontrow sched abi --kernel 6.12.0",
    "frontrow sched build --out /tmp/module",
    "frontrow sched disable /home",
    "frontrow sched enable /home",
    "frontrow sched status --watch 60",
    "frontrow snapshot restore layout.snapshot /dev/sdc1",
    "frontrow snapshot save /dev/sdb1 layout.snapshot",
];

/// What somebody who has read nothing should do.
const FIRST: &str = "First steps:
  sudo frontrow doctor --seconds 60  who waits on this machine, and for whom; changes nothing
  frontrow bench /home/me --workload m1 --out before.json
                                     how long saving a file takes, alone and beside a writer
  sudo frontrow sched enable /home   try the scheduler; it says how to undo it
  frontrow bench /home/me --workload m1 --out after.json
  frontrow bench compare before.json after.json";

/// The same command line with its examples.
pub fn add_to(command: Command) -> Command {
    let name = command.get_name().to_owned();
    below(command, &name).after_help(FIRST)
}

fn below(command: Command, path: &str) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|it| it.get_name().to_owned())
        .collect();
    let command = match of(path, &names) {
        Some(example) => command.before_help(format!("Example: {example}")),
        None => command,
    };
    names.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |it| below(it, &format!("{path} {name}")))
    })
}

/// The example of the command `path`, whose own commands have these names.
fn of(path: &str, names: &[String]) -> Option<&'static str> {
    EXAMPLES.into_iter().find(|example| {
        let rest = example
            .strip_prefix(path)
            .filter(|rest| rest.is_empty() || rest.starts_with(' '));
        let next = rest.map(|rest| rest.split_whitespace().next().unwrap_or_default());
        next.is_some_and(|next| !names.iter().any(|name| name == next))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn leaves(command: &Command, path: &str, found: &mut Vec<String>) {
        let visible = command.get_subcommands().filter(|it| !it.is_hide_set());
        let below: Vec<_> = visible.filter(|it| it.get_name() != "help").collect();
        if below.is_empty() {
            found.push(path.to_owned());
        }
        for command in below {
            leaves(command, &format!("{path} {}", command.get_name()), found);
        }
    }

    #[test]
    fn each_command_has_an_example_and_each_example_is_taken() {
        let command = add_to(crate::CommandLine::command());
        let mut all = Vec::new();
        leaves(&command, "frontrow", &mut all);
        let lacks: Vec<_> = all.iter().filter(|path| of(path, &[]).is_none()).collect();
        assert!(lacks.is_empty(), "{lacks:?}");
        for example in EXAMPLES {
            let words = example.replace('\'', "");
            let taken = command.clone().try_get_matches_from(words.split(' '));
            assert!(taken.is_ok(), "{example}: {}", taken.unwrap_err());
        }
    }
}
