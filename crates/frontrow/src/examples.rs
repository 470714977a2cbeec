//! An example of each command, for its help and man page.

use crate::program::Program;
use clap::Command;

/// Example command lines. The leading words that name commands decide to which command it belongs. The
/// first of a group of commands is the group's, too.
pub(crate) const FRONTROW: [&str; 34] = [
    "frontrow bench /home/me --out before.json",
    "frontrow bench compare before.json after.json",
    "frontrow blame --since yesterday",
    "frontrow blame notify",
    "frontrow blame watch",
    "frontrow completions bash",
    "frontrow defrag --check ~/Photos",
    "frontrow doctor --seconds 60 --html why.html",
    "frontrow fg set 4711",
    "frontrow fg daemon",
    "frontrow fg follow",
    "frontrow fg release",
    "frontrow fg status",
    "frontrow iopro export --to perfetto --output trace.pftrace recording.iopro",
    "frontrow iopro record -- sqlite3 app.db 'insert into log values (1)'",
    "frontrow iopro report recording.iopro",
    "frontrow launch firefox",
    "frontrow launch bench -- firefox",
    "frontrow launch calibrate",
    "frontrow launch install firefox.desktop",
    "frontrow launch plan -- firefox",
    "frontrow launch record -- firefox",
    "frontrow launch resume firefox",
    "frontrow off",
    "frontrow on --dry-run",
    "frontrow sched enable /home",
    "frontrow sched abi --kernel 6.12.0",
    "frontrow sched build --out /var/lib/frontrow/module",
    "frontrow sched disable /home",
    "frontrow sched status --watch 60",
    "frontrow snapshot save /dev/sdb1 layout.snapshot",
    "frontrow snapshot restore layout.snapshot /dev/sdc1",
    "frontrow status",
    "frontrow top --follow firefox",
];

/// Examples of `frontrow-lab`.
#[cfg(feature = "lab")]
pub(crate) const FRONTROW_LAB: [&str; 14] = [
    "frontrow-lab age /mnt/phone --days 30",
    "frontrow-lab ahead --device ufs --minutes 10",
    "frontrow-lab collect --device emmc --seeds 1..2",
    "frontrow-lab completions bash",
    "frontrow-lab exec --policy frontrow --with fio -- fio --name=a --rw=write --size=16M",
    "frontrow-lab hot-cold --memory 224 --minutes 10",
    "frontrow-lab join campaign --out result",
    "frontrow-lab list",
    "frontrow-lab powercut --days 1 --points 200",
    "frontrow-lab replay phone.trace",
    "frontrow-lab run qasio --workload m1 --load idle,writer --seeds 1 --out result",
    "frontrow-lab shell --with fio,strace",
    "frontrow-lab show qasio",
    "frontrow-lab torture order --kernel 6.1",
];

/// First steps for new users.
pub(crate) const FIRST_STEPS: &str = "First steps:
  sudo frontrow doctor --seconds 60  who waits on this machine, and for whom; changes nothing
  sudo frontrow on                   switch everything on, now and at each boot
  frontrow status                    what it does, and for whom
  sudo frontrow off                  put everything back as it was";

/// The same of the lab.
#[cfg(feature = "lab")]
pub(crate) const LAB_FIRST_STEPS: &str = "First steps:
  frontrow-lab run smoke --out result  boots an emulated phone twice, some seconds each
  frontrow-lab list                    what else there is to run, and on which devices";

/// Adds examples to the definition of the command line.
pub(crate) fn add_to(command: Command, program: &Program) -> Command {
    below(command, program.name, program.examples).after_help(program.first_steps)
}

fn below(command: Command, path: &str, examples: &[&'static str]) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|it| it.get_name().to_owned())
        .collect();
    // A whole program has first steps instead.
    let whole: &[String] = if path.contains(' ') { &[] } else { &names };
    let example = of(path, &names, examples).or_else(|| of(path, whole, examples));
    let command = match example {
        Some(example) => command.before_help(format!("Example: {example}")),
        None => command,
    };
    names.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |it| below(it, &format!("{path} {name}"), examples))
    })
}

/// Example of the command `path` with subcommands `names`.
fn of(path: &str, names: &[String], examples: &[&'static str]) -> Option<&'static str> {
    examples.iter().copied().find(|example| {
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

    fn each_has_one(program: &Program) {
        let command = program.whole_line();
        let mut all = Vec::new();
        leaves(&command, program.name, &mut all);
        let of = |path: &&String| of(path, &[], program.examples);
        let lacks: Vec<_> = all.iter().filter(|path| of(path).is_none()).collect();
        assert!(lacks.is_empty(), "{lacks:?}");
        for group in command.get_subcommands().filter(|it| it.has_subcommands()) {
            let help = group.clone().render_help().to_string();
            assert!(help.starts_with("Example: "), "{help}");
        }
        for example in program.examples {
            let words = example.replace('\'', "");
            let taken = command.clone().try_get_matches_from(words.split(' '));
            assert!(taken.is_ok(), "{example}: {}", taken.unwrap_err());
        }
    }

    #[test]
    fn each_command_has_an_example_and_each_example_is_taken() {
        each_has_one(&crate::FRONTROW);
        #[cfg(feature = "lab")]
        each_has_one(&crate::FRONTROW_LAB);
    }
}
