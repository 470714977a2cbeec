//! The guests' file system: an initramfs that is the same on every host.

use crate::cache::Cache;
use crate::cpio::Archive;
use crate::kernel::Kernel;
use crate::modules::Modules;
use crate::past::{self, Past};
use crate::sources::Sources;
use crate::{Error, elf, foreign, tool, toolchain, tools};
use guest::SPEC_PATH;
use module::kmod::{Source, Tree};
use record::policy::{Part, Scheduler};
use record::{GuestSpec, Policy};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use sys::arch::Arch;

/// Directories that the guest mounts something on.
const MOUNT_POINTS: [&str; 6] = ["dev", "proc", "sys", "tmp", "run", "mnt"];

/// The scheduler's module in the image.
const SCHEDULER_MODULE: &str = "/modules/frontrow_iosched.ko";

/// simflash's `policy` that serves the foreground first (`enum ftl_policy`).
const FG_AWARE: u64 = 2;

/// Pid 1 of guests.
const FRONTROW_GUEST: &str = "frontrow-guest";

/// The program of users' machines, among those that a guest may need.
pub(crate) const FRONTROW: &str = "frontrow";

/// This program, likewise.
pub(crate) const FRONTROW_LAB: &str = "frontrow-lab";

/// Where `make install-lab` puts what is for guests only, from where this program is.
const LIBRARY: &str = "../lib/frontrow";

/// Image that all guests of an experiment share.
pub struct Image {
    archive: Vec<u8>,
    /// For each policy the files of the modules it needs, in loading order.
    scheduler_modules: BTreeMap<String, Vec<String>>,
    /// Modules of the file system, if it is not built in.
    file_system_modules: Vec<String>,
    flash_module: String,
    /// Name → version or digest of what went in.
    pub inputs: BTreeMap<String, String>,
}

impl Image {
    /// Makes the image for `kernel` with all that `policies` need and `programs`
    /// besides.
    pub fn make(
        cache: &Cache,
        sources: &Sources,
        kernel: &Kernel,
        policies: &[Policy],
        programs: &[&str],
    ) -> Result<Image, Error> {
        let mut archive = Archive::new();
        for directory in MOUNT_POINTS {
            archive.directory(directory);
        }
        archive.link("etc/mtab", "/proc/mounts");
        archive.data("etc/passwd", b"root:x:0:0:root:/:/bin/sh\n".to_vec());
        let arch = kernel.tree.arch;
        archive.program("init", own_program(arch, FRONTROW_GUEST)?);
        let mut others = programs.to_vec();
        for name in [FRONTROW, FRONTROW_LAB] {
            if programs.contains(&name) {
                others.retain(|it| *it != name);
                archive.program(&format!("bin/{name}"), own_program(arch, name)?);
            }
        }
        let versions = tools::add(cache, &mut archive, arch, &others)?;

        let mut image = Image {
            archive: Vec::new(),
            scheduler_modules: BTreeMap::new(),
            file_system_modules: Vec::new(),
            flash_module: String::new(),
            inputs: BTreeMap::new(),
        };
        image.flash_module = put_own(cache, &mut archive, kernel, &sources.flash()?)?;
        let modules = Modules::of(kernel)?;
        image.file_system_modules = put_stock(&mut archive, &modules, "ext4")?;
        for policy in policies {
            let mut paths = match &policy.scheduler {
                Scheduler::Stock("none") => Vec::new(),
                Scheduler::Stock(name) => put_stock(&mut archive, &modules, name)?,
                Scheduler::Frontrow | Scheduler::Ablation(_) => {
                    let source = scheduler(sources, &kernel.tree)?;
                    vec![put_own(cache, &mut archive, kernel, &source)?]
                }
                Scheduler::Foreign { modules: paths, .. } => {
                    put_foreign(cache, &mut archive, &modules, paths)?
                }
            };
            if let Some(later) = policy.chosen_later() {
                paths.extend(put_stock(&mut archive, &modules, later)?);
            }
            image
                .scheduler_modules
                .insert(policy.name().to_owned(), paths);
        }
        image.archive = archive.bytes();
        image.inputs = inputs(kernel, &image.archive, &versions)?;
        Ok(image)
    }

    /// The initramfs of the guest that does `spec`. The kernel unpacks archives
    /// one after another, so the spec is a second one.
    pub fn with_spec(&self, spec: &GuestSpec) -> Result<Vec<u8>, Error> {
        let text = serde_json::to_vec(spec)?;
        let mut own = Archive::new();
        own.data(SPEC_PATH.trim_start_matches('/'), text);
        Ok([self.archive.as_slice(), &own.bytes()].concat())
    }

    /// Puts in a file of the user's; its digest is told among the inputs.
    pub fn add_file(&mut self, name: &str, content: Vec<u8>) {
        let digest = hex(&Sha256::digest(&content));
        self.inputs.insert(format!("{name}_sha256"), digest);
        let mut archive = Archive::new();
        archive.data(name, content);
        self.archive.extend(archive.bytes());
    }

    /// Puts in what an aged device begins with.
    pub fn add_past(&mut self, past: Past) {
        if let Some(bytes) = past.into_bytes() {
            self.add_file(past::PATH.trim_start_matches('/'), bytes);
        }
    }

    /// The same for those of `lines` whose module the kernel has.
    pub fn add_modules_there_are(
        &mut self,
        kernel: &Kernel,
        lines: &[&str],
    ) -> Result<Vec<record::Module>, Error> {
        let modules = Modules::of(kernel)?;
        let mut there = Vec::new();
        for line in lines {
            let name = line.split(' ').next().unwrap_or_default();
            if modules.has(name)? {
                there.push((*line).to_owned());
            }
        }
        self.add_modules(kernel, &there)
    }

    /// Puts in modules of the kernel's own, such as `xfs` or `null_blk nr_devices=0`, and what they
    /// need; gives what a guest loads for them, in order.
    pub fn add_modules(
        &mut self,
        kernel: &Kernel,
        lines: &[String],
    ) -> Result<Vec<record::Module>, Error> {
        let modules = Modules::of(kernel)?;
        // The kernel unpacks archives one after another.
        let mut archive = Archive::new();
        let mut added: Vec<record::Module> = Vec::new();
        for line in lines {
            let (name, parameters) = line.split_once(' ').unwrap_or((line, ""));
            for (file, content) in modules.with_dependencies(name)? {
                let module = record::Module {
                    path: put(&mut archive, &file, content),
                    parameters: if file == name { parameters } else { "" }.to_owned(),
                };
                if !added.iter().any(|it| it.path == module.path) {
                    added.push(module);
                }
            }
        }
        self.archive.extend(archive.bytes());
        Ok(added)
    }

    /// Modules for a guest with `policy`, in loading order; `flash` has the device's parameters.
    pub fn modules(&self, policy: &Policy, flash: &BTreeMap<String, u64>) -> Vec<record::Module> {
        let schedulers = self.scheduler_modules.get(policy.name());
        let mut flash = flash.clone();
        if policy.has_part(Part::Device) {
            flash.insert("policy".to_owned(), FG_AWARE);
        }
        let mut modules = self.in_order(schedulers.into_iter().flatten(), &flash);
        for module in &mut modules {
            if module.path == SCHEDULER_MODULE {
                module.parameters = policy.scheduler.module_parameters().to_owned();
            }
        }
        modules
    }

    /// Modules for a guest that may use any policy.
    pub fn all_modules(&self, flash: &BTreeMap<String, u64>) -> Vec<record::Module> {
        self.in_order(self.scheduler_modules.values().flatten(), flash)
    }

    fn in_order<'a>(
        &'a self,
        schedulers: impl Iterator<Item = &'a String>,
        flash: &BTreeMap<String, u64>,
    ) -> Vec<record::Module> {
        let mut modules = Vec::new();
        for path in self.file_system_modules.iter().chain(schedulers) {
            let module = record::Module {
                path: path.clone(),
                parameters: String::new(),
            };
            // Two may need the same module.
            if !modules.contains(&module) {
                modules.push(module);
            }
        }
        let settings = flash.iter().map(|(name, value)| format!("{name}={value}"));
        modules.push(record::Module {
            path: self.flash_module.clone(),
            parameters: settings.collect::<Vec<_>>().join(" "),
        });
        modules
    }
}

/// Puts into the cache what `Image::make` would take from there.
pub(crate) fn prepare(
    cache: &Cache,
    sources: &Sources,
    kernel: &Kernel,
    policies: &[Policy],
    programs: &[&str],
) -> Result<(), Error> {
    let (tree, mut others) = (&kernel.tree, programs.to_vec());
    others.retain(|it| ![FRONTROW, FRONTROW_LAB].contains(it));
    tools::add(cache, &mut Archive::new(), tree.arch, &others)?;
    built(cache, tree, &sources.flash()?)?;
    if policies.iter().any(|it| it.scheduler.is_ours()) {
        built(cache, tree, &scheduler(sources, tree)?)?;
    }
    let foreign = policies.iter().flat_map(|it| it.modules());
    for path in foreign.filter(|path| path.is_dir()) {
        built(cache, tree, &foreign::source(path)?)?;
    }
    Ok(())
}

/// Sources of the scheduler's module for a kernel.
fn scheduler(sources: &Sources, tree: &Tree) -> Result<Source, Error> {
    let header = module::sched::build::header(&tree.btf, Some(&tree.headers))?;
    let source = sources.scheduler()?;
    Ok(source.with(module::sched::build::HEADER, header))
}

/// One of Frontrow's programs, built for `arch` and stripped, if it is statically linked.
fn own_program(arch: Arch, name: &str) -> Result<Vec<u8>, Error> {
    let path = built_program(arch, name)?;
    let program = fs::read(&path).map_err(Error::file(&path))?;
    if elf::interpreter(&program).is_some() {
        return Err(Error::Usage(format!(
            "{} is dynamically linked and cannot run in a guest: build it with `make build`",
            path.display()
        )));
    }
    stripped(arch, &program, &["--strip-all", NO_BUILD_ID, NO_COMMIT])
}

/// The program that was built with this one: beside it or, of another architecture, with that in
/// its name or where cargo puts it.
fn built_program(arch: Arch, name: &str) -> Result<PathBuf, Error> {
    let own = env::current_exe().map_err(Error::file("/proc/self/exe"))?;
    let is_native = arch == sys::arch::NATIVE;
    if is_native && name == FRONTROW_LAB {
        // Also where the file was replaced meanwhile.
        return Ok(PathBuf::from("/proc/self/exe"));
    }
    let suffix = if is_native { "" } else { arch.suffix };
    let beside = own.with_file_name(format!("{name}{suffix}"));
    let cargos: PathBuf = own
        .components()
        .map(|part| match part.as_os_str() == sys::arch::NATIVE.rust {
            true => arch.rust.as_ref(),
            false => part.as_os_str(),
        })
        .collect();
    let library = own.with_file_name(LIBRARY).join(format!("{name}{suffix}"));
    let places = [beside, cargos.with_file_name(name), library];
    let is_wanted = |path: &&PathBuf| path.is_file() && (is_native || **path != own);
    let found = places.iter().find(is_wanted);
    found.cloned().ok_or_else(|| {
        Error::Usage(format!(
            "there is no {name} for {} at {}: build it with `make ARCH={}`",
            arch.name,
            places
                .each_ref()
                .map(|it| it.display().to_string())
                .join(" or "),
            arch.name
        ))
    })
}

/// The linker's digest of what is stripped, and so of the host's directories.
const NO_BUILD_ID: &str = "--remove-section=.note.gnu.build-id";

/// Option that removes the commit of `make build`, which changes without any code.
const NO_COMMIT: &str = "--remove-section=.frontrow.commit";

/// Debug information, and some of the compiler's names for symbols, depend on the
/// host's directories; and they cost guest memory.
fn stripped(arch: Arch, program: &[u8], options: &[&str]) -> Result<Vec<u8>, Error> {
    let file = tempfile::NamedTempFile::new().map_err(Error::file(env::temp_dir()))?;
    fs::write(file.path(), program).map_err(Error::file(file.path()))?;
    tool::output(
        Command::new(format!("{}strip", arch.cross_prefix()))
            .args(options)
            .arg(file.path()),
        arch.compiler_package(),
    )?;
    fs::read(file.path()).map_err(Error::file(file.path()))
}

fn put_stock(archive: &mut Archive, modules: &Modules, module: &str) -> Result<Vec<String>, Error> {
    let name = match module {
        "kyber" => "kyber_iosched",
        other => other,
    };
    let mut paths = Vec::new();
    for (name, content) in modules.with_dependencies(name)? {
        paths.push(put(archive, &name, content));
    }
    Ok(paths)
}

fn put_own(
    cache: &Cache,
    archive: &mut Archive,
    kernel: &Kernel,
    source: &Source,
) -> Result<String, Error> {
    let (name, module) = own_module(cache, &kernel.tree, source)?;
    Ok(put(archive, &name, module))
}

/// The module's name and content.
fn own_module(cache: &Cache, tree: &Tree, source: &Source) -> Result<(String, Vec<u8>), Error> {
    let built = built(cache, tree, source)?;
    let module = fs::read(&built).map_err(Error::file(&built))?;
    let module = stripped(tree.arch, &module, &["--strip-debug", NO_BUILD_ID])?;
    Ok((foreign::stem(&built), module))
}

/// Modules of others, and what they need of the kernel's own, in loading order.
fn put_foreign(
    cache: &Cache,
    archive: &mut Archive,
    modules: &Modules,
    paths: &[PathBuf],
) -> Result<Vec<String>, Error> {
    let tree = &modules.kernel().tree;
    let mut put_in = Vec::new();
    for path in paths {
        let (name, content) = match path.is_dir() {
            true => own_module(cache, tree, &foreign::source(path)?)?,
            false => foreign::module(path, &tree.release)?,
        };
        for (name, content) in modules.needed_by(&content)? {
            put_in.push(put(archive, &name, content));
        }
        // Two may have the same name: a copy of ours, and ours.
        let digest = hex(&Sha256::digest(&content));
        put_in.push(put(archive, &format!("{name}-{}", &digest[..16]), content));
    }
    Ok(put_in)
}

fn put(archive: &mut Archive, name: &str, content: Vec<u8>) -> String {
    let path = format!("modules/{name}.ko");
    archive.data(&path, content);
    format!("/{path}")
}

/// Builds of one module for one kernel that stay in the cache: for those who
/// change it, and compare.
const KEPT_BUILDS: usize = 8;

/// The module, from the cache if just these sources were built before.
fn built(cache: &Cache, tree: &Tree, source: &Source) -> Result<PathBuf, Error> {
    let mut digest = Sha256::new();
    digest.update(tree.headers.as_os_str().as_encoded_bytes());
    digest.update(toolchain::compiler_version(tree)?);
    for (path, content) in &source.files {
        digest.update((path.len() as u64).to_le_bytes());
        digest.update(path);
        digest.update((content.len() as u64).to_le_bytes());
        digest.update(content);
    }
    let digest = hex(&digest.finalize());
    let builds = format!("modules/{}", tree.release);
    let name = format!("{builds}/{}-{}", source.name, &digest[..16]);
    let place = cache.directory(&name, |dir| {
        let scratch = dir.join("build");
        let module = module::kmod::build(tree, source, &scratch)?;
        let kept = dir.join(module.file_name().unwrap_or_default());
        fs::rename(&module, &kept).map_err(Error::file(&kept))?;
        fs::remove_dir_all(&scratch).map_err(Error::file(&scratch))
    })?;
    cache.keep_latest(&builds, &format!("{}-", source.name), KEPT_BUILDS)?;
    let entries = fs::read_dir(&place).map_err(Error::file(&place))?;
    let modules = entries.filter_map(|entry| Some(entry.ok()?.path()));
    modules
        .filter(|path| path.extension().is_some_and(|it| it == "ko"))
        .max()
        .ok_or_else(|| Error::Usage(format!("{} is damaged: delete it", place.display())))
}

fn inputs(
    kernel: &Kernel,
    archive: &[u8],
    versions: &[String],
) -> Result<BTreeMap<String, String>, Error> {
    let mut inputs = BTreeMap::from([
        ("kernel".to_owned(), kernel.identity.clone()),
        ("gcc".to_owned(), toolchain::compiler_version(&kernel.tree)?),
        ("rustc".to_owned(), env!("FRONTROW_RUSTC").to_owned()),
        ("image_sha256".to_owned(), hex(&Sha256::digest(archive))),
    ]);
    for line in versions {
        let (package, version) = line.split_once(' ').unwrap_or((line, ""));
        inputs.insert(package.to_owned(), version.to_owned());
    }
    Ok(inputs)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
