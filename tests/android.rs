//! The scheduler's module on phones whose kernel lets modules use the symbols of Android's stable
//! interface only (KMI). No such kernel can be run here; what can be tested is what it imports.

use lab::{Cache, Kernel};
use module::kmod::Tree;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Symbols of the interface that the module may import.
const INTERFACE: &str = include_str!("android/symbols");

/// Symbols that the compiler, the CPU's architecture and Debian's configuration add on x86-64.
const OF_THIS_MACHINE: [&str; 14] = [
    "__SCT__might_resched",
    "__SCT__preempt_schedule_notrace",
    "__cpu_online_mask",
    "__fentry__",
    "__list_add_valid_or_report",
    "__list_del_entry_valid_or_report",
    "__x86_indirect_thunk_rax",
    "__x86_return_thunk",
    "const_pcpu_hot",
    "hugetlb_optimize_vmemmap_key",
    "module_layout",
    "pcpu_hot",
    "system_percpu_wq",
    "this_cpu_off",
];

/// The kernel's headers in `directory`, with only those lines of `Module.symvers` whose symbol
/// `is_offered`.
fn offering(kernel: &Kernel, directory: &Path, is_offered: &dyn Fn(&str) -> bool) -> Tree {
    let headers = fs::canonicalize(&kernel.tree.headers).unwrap();
    for entry in fs::read_dir(&headers).unwrap() {
        let entry = entry.unwrap();
        symlink(entry.path(), directory.join(entry.file_name())).unwrap();
    }
    replace(directory, "Module.symvers", &|text| {
        let symbol = |line: &str| line.split('\t').nth(1).unwrap_or_default().to_owned();
        let lines = text.lines().filter(|line| is_offered(&symbol(line)));
        lines.map(|line| format!("{line}\n")).collect()
    });
    // It names the common headers by their place beside it.
    replace(directory, "Makefile", &|text| {
        let here = format!("{}/", headers.display());
        text.replace("$(dir $(lastword $(MAKEFILE_LIST)))", &here)
    });
    Tree {
        headers: directory.to_owned(),
        ..kernel.tree.clone()
    }
}

fn replace(directory: &Path, name: &str, change: &dyn Fn(&str) -> String) {
    let path = directory.join(name);
    let text = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(path, change(&text)).unwrap();
}

/// Builds the module for 6.12 with what `is_offered`; modpost refuses what is not.
fn built(is_offered: &dyn Fn(&str) -> bool) -> Result<PathBuf, String> {
    let kernel = Kernel::find(&Cache::of_user().unwrap(), "6.12", None).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let headers = directory.path().join("headers");
    fs::create_dir(&headers).unwrap();
    let tree = offering(&kernel, &headers, is_offered);
    let out = directory.path().join("out");
    let source = module::sched::build::source();
    module::sched::build::build(&tree, source, &out).map_err(|error| error.to_string())
}

#[test]
fn a_phones_kernel_offers_all_that_the_module_imports() {
    let interface = INTERFACE.lines().filter(|line| !line.starts_with('#'));
    let offered: BTreeSet<&str> = interface.chain(OF_THIS_MACHINE).collect();
    built(&|symbol| offered.contains(symbol)).unwrap();
    // That the build fails where one is missing is seen here.
    let refusal = built(&|symbol| offered.contains(symbol) && symbol != "folio_mapping");
    let refusal = refusal.unwrap_err();
    assert!(refusal.contains("folio_mapping"), "{refusal}");
}
