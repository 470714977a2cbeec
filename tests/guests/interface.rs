//! The scheduler's module on phones whose kernel lets modules use the symbols of Android's stable
//! interface only (KMI). No such kernel can be run here; what can be tested is what it imports.

use lab::{Cache, Kernel};
use module::kmod::Tree;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use sys::arch::{ARM64, Arch, X86_64};

/// Symbols of the interface that the module may import.
const INTERFACE: &str = include_str!("interface/symbols");

/// Symbols that the compiler, the CPU's architecture and Debian's configuration add on x86-64.
const OF_X86_64: [&str; 14] = [
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

/// The same on arm64.
const OF_ARM64: [&str; 9] = [
    "__cond_resched",
    "__cpu_online_mask",
    "__list_add_valid_or_report",
    "__list_del_entry_valid_or_report",
    "alt_cb_patch_nops",
    "memset",
    "module_layout",
    "queued_spin_lock_slowpath",
    "system_percpu_wq",
];

/// What a configuration has that only gcc understands.
const OF_GCC: [&str; 11] = [
    "CC_IS_GCC",
    "FTRACE_MCOUNT_USE_CC",
    "GCC10_NO_ARRAY_BOUNDS",
    "GCC_ASM_GOTO_OUTPUT_BROKEN",
    "GCC_NO_STRINGOP_OVERFLOW",
    "GCC_VERSION",
    "INIT_STACK_ALL_ZERO",
    "LTO_NONE",
    "MITIGATION_RETHUNK",
    "MITIGATION_SLS",
    "USE_X86_SEG_SUPPORT",
];

/// What one of clang has instead; warnings are errors.
const OF_CLANG: [&str; 6] = [
    "CC_IS_CLANG",
    "FTRACE_MCOUNT_USE_OBJTOOL",
    "LTO",
    "LTO_CLANG",
    "LTO_CLANG_THIN",
    "WERROR",
];

/// The kernel's headers in `directory`, which may be changed there.
fn copied(kernel: &Kernel, directory: &Path) -> Tree {
    let headers = fs::canonicalize(&kernel.tree.headers).unwrap();
    link_all(&headers, directory);
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

fn link_all(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        symlink(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Headers with only those lines of `Module.symvers` whose symbol `is_offered`.
fn offering(kernel: &Kernel, directory: &Path, is_offered: &dyn Fn(&str) -> bool) -> Tree {
    let tree = copied(kernel, directory);
    replace(directory, "Module.symvers", &|text| {
        let symbol = |line: &str| line.split('\t').nth(1).unwrap_or_default().to_owned();
        let lines = text.lines().filter(|line| is_offered(&symbol(line)));
        lines.map(|line| format!("{line}\n")).collect()
    });
    tree
}

/// Headers as if clang had built the kernel, for link-time optimization.
fn of_clang(kernel: &Kernel, directory: &Path) -> Tree {
    let tree = copied(kernel, directory);
    // Which version of gcc Debian takes.
    fs::remove_file(directory.join(".kernelvariables")).unwrap();
    for name in ["include", "include/config", "include/generated"] {
        let inner = directory.join(name);
        let from = fs::canonicalize(&inner).unwrap();
        fs::remove_file(&inner).unwrap();
        link_all(&from, &inner);
    }
    for (name, prefix, yes, zero) in [
        (".config", "CONFIG_", "=y", "=0"),
        ("include/config/auto.conf", "CONFIG_", "=y", "=0"),
        (
            "include/generated/autoconf.h",
            "#define CONFIG_",
            " 1",
            " 0",
        ),
    ] {
        let is_gccs = |line: &str| {
            let option = line.strip_prefix(prefix).unwrap_or_default();
            OF_GCC.contains(&option.split(['=', ' ']).next().unwrap_or_default())
        };
        replace(directory, name, &|text| {
            let kept = text.lines().filter(|line| !is_gccs(line));
            let mut lines: String = kept.map(|line| format!("{line}\n")).collect();
            lines.extend(OF_CLANG.map(|option| format!("{prefix}{option}{yes}\n")));
            lines += &format!("{prefix}GCC_VERSION{zero}\n");
            lines.replace("fallthrough=5", "fallthrough")
        });
    }
    tree
}

fn replace(directory: &Path, name: &str, change: &dyn Fn(&str) -> String) {
    let path = directory.join(name);
    let text = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(path, change(&text)).unwrap();
}

/// Builds the module for 6.12 with such headers.
fn built(arch: Arch, headers: &dyn Fn(&Kernel, &Path) -> Tree) -> Result<PathBuf, String> {
    let kernel = Kernel::find(&Cache::of_user().unwrap(), "6.12", Some(arch)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let tree = headers(&kernel, &directory.path().join("headers"));
    let out = directory.path().join("out");
    let source = module::sched::build::source();
    module::sched::build::build(&tree, source, &out).map_err(|error| error.to_string())
}

fn needs_only_the_interface(arch: Arch, added: &[&str]) {
    let interface = INTERFACE.lines().filter(|line| !line.starts_with('#'));
    let offered: BTreeSet<&str> = interface.chain(added.iter().copied()).collect();
    // modpost refuses what is not offered.
    built(arch, &|kernel, directory| {
        offering(kernel, directory, &|it| offered.contains(it))
    })
    .unwrap();
    // That the build fails where one is missing is seen here.
    let lacking = |it: &str| offered.contains(it) && it != "folio_mapping";
    let refusal = built(arch, &|kernel, directory| {
        offering(kernel, directory, &lacking)
    });
    let refusal = refusal.unwrap_err();
    assert!(refusal.contains("folio_mapping"), "{refusal}");
}

#[test]
fn a_phones_kernel_offers_all_that_the_module_imports() {
    needs_only_the_interface(X86_64, &OF_X86_64);
    needs_only_the_interface(ARM64, &OF_ARM64);
}

#[test]
#[ignore = "takes clang's linker: make stress-guests"]
fn clang_builds_the_module_without_a_warning() {
    for arch in [X86_64, ARM64] {
        built(arch, &of_clang).unwrap();
    }
}

/// Makes the package, and returns its path.
fn package(module: &Path, out: &Path) -> PathBuf {
    let variables = [
        format!("PACKAGES_OUT={}", out.display()),
        format!("ANDROID_MODULE={}", module.display()),
        // Any program will do.
        "ANDROID_PROGRAM=/bin/true".to_owned(),
    ];
    let mut make = Command::new("make");
    let make = make
        .arg("android-pack")
        .args(variables)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    said(make);
    let name = format!("frontrow-android-{}.zip", env!("CARGO_PKG_VERSION"));
    out.join(name)
}

fn said(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {complaint}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_package_of_phones_has_what_its_installer_expects() {
    // Any module will do that says which kernel it is for.
    let kernel = Kernel::find(&Cache::of_user().unwrap(), "6.1", None).unwrap();
    let module = kernel.modules.join("kernel/block/bfq.ko");
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let [here, there] = ["here", "there"].map(|it| package(&module, &directory.join(it)));
    assert!(fs::read(&here).unwrap() == fs::read(there).unwrap());

    let listed = said(Command::new("unzip").arg("-Z1").arg(&here));
    let mut listed: Vec<&str> = listed.lines().collect();
    listed.sort_unstable();
    let wanted = [
        "LICENSE",
        "META-INF/com/google/android/updater-script",
        "action.sh",
        "customize.sh",
        "frontrow_iosched.ko",
        "module.prop",
        "service.sh",
        "system/bin/frontrow",
        "uninstall.sh",
    ];
    assert_eq!(listed, wanted);
    let text = |name: &str| said(Command::new("unzip").arg("-p").arg(&here).arg(name));
    let release = &kernel.tree.release;
    for name in ["module.prop", "customize.sh"] {
        let text = text(name);
        assert!(text.contains(release.as_str()), "{text}");
        assert!(!text.contains('@'), "{text}");
    }
    for name in wanted.iter().filter(|it| it.ends_with(".sh")) {
        let path = directory.join(name);
        fs::write(&path, text(name)).unwrap();
        said(Command::new("sh").arg("-n").arg(path));
    }
}
