//! Experiments, device profiles and module sources: from the checkout the
//! command runs in, else as they were when the binary was built.

use crate::Error;
use module::kmod::Source;
use record::{Device, Experiment, FRESH};
use std::collections::BTreeMap;
use std::env;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

// `EMBEDDED: &[(&str, &[u8])]`, paths relative to the checkout.
include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// Where experiments, profiles and module sources come from.
#[derive(Clone, Debug)]
pub struct Sources {
    checkout: Option<PathBuf>,
}

impl Sources {
    /// The checkout that the current directory is in, if it is in one.
    pub fn here() -> Sources {
        let checkout = env::current_dir().ok().and_then(|here| {
            let is_checkout = |dir: &&Path| {
                dir.join("kernel/iosched/Kbuild").is_file() && dir.join("experiments").is_dir()
            };
            here.ancestors().find(is_checkout).map(Path::to_owned)
        });
        Sources { checkout }
    }

    /// What the binary holds.
    pub fn embedded() -> Sources {
        Sources { checkout: None }
    }

    /// All experiments, by name, and why any of their files cannot be read.
    pub fn experiments(&self) -> Result<(Vec<Experiment>, Vec<Error>), Error> {
        let files = self.files("experiments")?;
        let tomls = files.iter().filter(|(path, _)| is_toml(path));
        let read = tomls.map(|(path, text)| read_experiment(path, text));
        let (good, bad): (Vec<_>, Vec<_>) = read.partition(Result::is_ok);
        Ok((
            good.into_iter().flatten().collect(),
            bad.into_iter().filter_map(Result::err).collect(),
        ))
    }

    /// The experiment `name`, or the one in the file `name`, which ends in `.toml`.
    pub fn experiment(&self, name: &str) -> Result<Experiment, Error> {
        if name.ends_with(".toml") {
            return experiment_at(Path::new(name));
        }
        let files = self.files("experiments")?;
        let file = format!("{name}.toml");
        if let Some(text) = files.get(&file).filter(|_| is_toml(&file)) {
            return read_experiment(&file, text);
        }
        let tomls = files.keys().filter(|path| is_toml(path));
        let names: Vec<_> = tomls.filter_map(|it| it.strip_suffix(".toml")).collect();
        Err(Error::Usage(format!(
            "there is no experiment '{name}': give one of {}, or the path of a file that ends in .toml",
            names.join(", ")
        )))
    }

    /// The profile `name`, or the one in the file `name`.
    ///
    /// `:fresh` after either selects the same device without a past.
    pub fn device(&self, name: &str) -> Result<Device, Error> {
        if let Some(name) = name.strip_suffix(FRESH) {
            return Ok(self.device(name)?.fresh());
        }
        if name.ends_with(".toml") {
            let text = fs::read(name).map_err(Error::file(name))?;
            return read_device(name, &text);
        }
        let files = self.files("experiments/devices")?;
        if let Some(text) = files.get(&format!("{name}.toml")) {
            let path = format!("{name}.toml");
            return named(&path, read_device(&path, text)?, |it| &it.name);
        }
        Err(Error::Usage(format!(
            "there is no device '{name}': give one of {}, or the path of a profile that ends in .toml",
            names_of(&files).join(", ")
        )))
    }

    /// Names of all profiles; none if they cannot be read.
    pub fn device_names(&self) -> Vec<String> {
        let files = self.files("experiments/devices").unwrap_or_default();
        names_of(&files).into_iter().map(str::to_owned).collect()
    }

    /// The sources of the emulated flash device.
    pub fn flash(&self) -> Result<Source, Error> {
        self.module("simflash")
    }

    /// The sources of the scheduler, without the header made for a kernel.
    pub fn scheduler(&self) -> Result<Source, Error> {
        match self.checkout {
            Some(_) => self.module("iosched"),
            None => Ok(module::sched::build::source()),
        }
    }

    fn module(&self, name: &str) -> Result<Source, Error> {
        // Host tests are no part of the module.
        let wanted = |path: &String| {
            !path.starts_with("test/") && Source::is_wanted(path.rsplit('/').next().unwrap_or(path))
        };
        let files = self.files(&format!("kernel/{name}"))?;
        Ok(Source {
            name: name.to_owned(),
            files: files.into_iter().filter(|(path, _)| wanted(path)).collect(),
        })
    }

    /// Everything below `dir`, by path relative to it.
    fn files(&self, dir: &str) -> Result<BTreeMap<String, Vec<u8>>, Error> {
        let mut files = BTreeMap::new();
        match &self.checkout {
            Some(root) => read_into(&root.join(dir), "", &mut files)?,
            None => files.extend(EMBEDDED.iter().filter_map(|(path, content)| {
                let inside = path.strip_prefix(dir)?.strip_prefix('/')?;
                Some((inside.to_owned(), content.to_vec()))
            })),
        }
        Ok(files)
    }
}

/// Names of the profiles among `files`.
fn names_of(files: &BTreeMap<String, Vec<u8>>) -> Vec<&str> {
    let names = files.keys().filter_map(|it| it.strip_suffix(".toml"));
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

fn read_into(dir: &Path, prefix: &str, files: &mut BTreeMap<String, Vec<u8>>) -> Result<(), Error> {
    for entry in fs::read_dir(dir).map_err(Error::file(dir))? {
        let path = entry.map_err(Error::file(dir))?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            read_into(&path, &format!("{prefix}{name}/"), files)?;
        } else {
            files.insert(
                format!("{prefix}{name}"),
                fs::read(&path).map_err(Error::file(&path))?,
            );
        }
    }
    Ok(())
}

fn is_toml(path: &str) -> bool {
    path.ends_with(".toml") && !path.contains('/')
}

fn read_experiment(path: &str, text: &[u8]) -> Result<Experiment, Error> {
    let experiment = Experiment::read(&String::from_utf8_lossy(text));
    let experiment = experiment.map_err(|error| unreadable(path, &error))?;
    named(path, experiment, |it| &it.name)
}

/// The experiment in a file of the user's, whose modules are beside it unless their paths say more.
fn experiment_at(path: &Path) -> Result<Experiment, Error> {
    let text = fs::read_to_string(path).map_err(Error::file(path))?;
    let read = Experiment::read(&text);
    let mut experiment = read.map_err(|error| unreadable(&path.display().to_string(), &error))?;
    let beside = path.parent().unwrap_or(Path::new(""));
    let policies = experiment.policies.into_iter();
    experiment.policies = policies
        .map(|it| it.with_paths(|module| beside.join(module)))
        .collect();
    Ok(experiment)
}

/// The value, if the file at `path` is called after its name.
fn named<T>(path: &str, value: T, name: impl Fn(&T) -> &str) -> Result<T, Error> {
    if format!("{}.toml", name(&value)) != path {
        return Err(Error::Usage(format!(
            "{path} says its name is '{}': a file is called after the name in it",
            name(&value)
        )));
    }
    Ok(value)
}

fn read_device(path: &str, text: &[u8]) -> Result<Device, Error> {
    toml::from_slice(text).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &str, error: &impl Display) -> Error {
    Error::Usage(format!("cannot read {path}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_experiments_and_their_default_device_can_be_read() {
        let (experiments, bad) = Sources::embedded().experiments().unwrap();
        assert!(bad.is_empty());
        assert!(experiments.iter().any(|it| it.name == "smoke"));
        assert!(experiments.iter().any(|it| it.name == "qasio"));
        Sources::embedded().device("emmc").unwrap();
    }

    #[test]
    fn a_bad_file_breaks_only_itself() {
        let checkout = tempfile::tempdir().unwrap();
        let experiments = checkout.path().join("experiments");
        fs::create_dir(&experiments).unwrap();
        let good = "name = 'good'\ntitle = 'x'\npolicies = ['none']\nmemory_mib = 512\n\
                    limit_virtual_s = 1\nruns = [{ workload = 'm1' }]\n";
        fs::write(experiments.join("good.toml"), good).unwrap();
        fs::write(experiments.join("bad.toml"), "name = 'bad'\n").unwrap();
        let sources = Sources {
            checkout: Some(checkout.path().to_owned()),
        };
        assert_eq!(sources.experiment("good").unwrap().name, "good");
        let (good, bad) = sources.experiments().unwrap();
        assert_eq!((good.len(), bad.len()), (1, 1));
        assert!(bad[0].to_string().contains("bad.toml"), "{}", bad[0]);
        assert!(sources.experiment("bad").is_err());
        let error = sources.experiment("devices/emmc").unwrap_err().to_string();
        assert!(error.contains("bad, good"), "{error}");
    }

    #[test]
    fn a_file_of_ones_own_has_its_modules_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("any.toml");
        let text = "name = 'mine'\ntitle = 'x'\nmemory_mib = 512\nlimit_virtual_s = 1\n\
                    policies = ['bfq', { name = 'adios', scheduler = 'adios', modules = ['a'] }]\n\
                    baselines = ['bfq', 'adios']\nruns = [{ workload = 'm1' }]\n";
        fs::write(&path, text).unwrap();
        let name = path.to_str().unwrap();
        let experiment = Sources::embedded().experiment(name).unwrap();
        assert_eq!(experiment.policies[1].modules(), [dir.path().join("a")]);
        assert_eq!(experiment.baselines, ["bfq", "adios"]);
        fs::write(&path, text.replace("['bfq', 'adios']", "['kyber']")).unwrap();
        let error = Sources::embedded()
            .experiment(name)
            .unwrap_err()
            .to_string();
        assert!(error.contains("kyber"), "{error}");
    }

    #[test]
    fn an_unknown_name_gives_the_known_ones() {
        let error = Sources::embedded()
            .experiment("nope")
            .unwrap_err()
            .to_string();
        assert!(error.contains("smoke"), "{error}");
        let error = Sources::embedded().device("nope").unwrap_err().to_string();
        assert!(error.contains("emmc"), "{error}");
    }

    #[test]
    fn a_profile_that_is_misspelt_is_refused_with_the_place() {
        let error = read_device("my.toml", b"name = \"x\"\nlatency = 3\n")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("my.toml") && error.contains("latency"),
            "{error}"
        );
    }
}
