//! `make packages`: what is in them, that they are the same wherever they are made, and what they
//! do to a Debian.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::new_debian::Debian;

const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(CHECKOUT)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Makes this of the programs that the tests have built. Packages are compressed little: it is tested
/// what is in them.
fn make(arguments: &[&str]) -> String {
    let made = Command::new("make")
        .args(arguments)
        .arg("PROFILE=debug")
        .env("DPKG_DEB_COMPRESSOR_LEVEL", "0")
        .current_dir(CHECKOUT)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "make {arguments:?}: {said}");
    String::from_utf8(made.stdout).unwrap()
}

/// Each package's bytes by its name.
fn packages(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let out_argument = format!("PACKAGES_OUT={}", out.display());
    make(&[
        "pack",
        &out_argument,
        "RPM_OPTIONS=--define '_binary_payload w1.gzdio'",
    ]);
    let entries = fs::read_dir(out).unwrap().map(|it| it.unwrap().path());
    entries
        .map(|it| {
            let name = it.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(it).unwrap())
        })
        .collect()
}

/// Paths of files and links, sorted.
fn files_of_deb(package: &Path) -> Vec<String> {
    let lines = output("dpkg-deb", &["--contents", package.to_str().unwrap()]);
    let files = lines.lines().filter(|it| !it.starts_with('d'));
    let mut paths: Vec<String> = files
        .map(|it| it.split_whitespace().nth(5).unwrap()[1..].to_owned())
        .collect();
    paths.sort();
    paths
}

fn files_of_rpm(package: &Path) -> Vec<String> {
    let format = "[%{FILEMODES:perms} %{FILENAMES}\n]";
    let package = package.to_str().unwrap();
    let lines = output("rpm", &["-qp", "--queryformat", format, package]);
    let files = lines.lines().filter(|it| !it.starts_with('d'));
    let mut paths: Vec<String> = files
        .map(|it| it.split_once(' ').unwrap().1.to_owned())
        .collect();
    paths.sort();
    paths
}

/// Paths of files and links below a directory, sorted.
fn files_below(directory: &Path) -> Vec<String> {
    let root = directory.to_str().unwrap();
    let found = output("find", &[root, "(", "-type", "f", "-o", "-type", "l", ")"]);
    let mut paths: Vec<String> = found
        .lines()
        .map(|it| it[root.len()..].to_owned())
        .collect();
    paths.sort();
    paths
}

fn is_debians_own(path: &str) -> bool {
    path.starts_with("/usr/share/doc/") || path.starts_with("/usr/share/lintian/")
}

#[test]
fn packages_are_the_same_wherever_they_are_made_and_hold_what_install_installs() {
    let scratch = tempfile::tempdir().unwrap();
    let (here, there) = (scratch.path().join("here"), scratch.path().join("a/there"));
    fs::create_dir(scratch.path().join("a")).unwrap();
    let made = packages(&here);
    let again = packages(&there);
    let names: Vec<&str> = made.keys().map(String::as_str).collect();
    let version = env!("CARGO_PKG_VERSION");
    let wanted = [
        format!("frontrow-{version}-1.x86_64.rpm"),
        format!("frontrow-dkms-{version}-1.noarch.rpm"),
        format!("frontrow-dkms_{version}-1_all.deb"),
        format!("frontrow-lab-{version}-1.x86_64.rpm"),
        format!("frontrow-lab_{version}-1_amd64.deb"),
        format!("frontrow_{version}-1_amd64.deb"),
    ];
    assert_eq!(names, wanted);
    for (name, bytes) in &made {
        assert!(again[name] == *bytes, "{name} is another the second time");
    }

    let destination = scratch.path().join("installed");
    let destination_argument = format!("DESTDIR={}", destination.display());
    for target in ["install", "install-lab"] {
        make(&[target, &destination_argument, "PREFIX=/usr"]);
    }
    let mut installed: Vec<String> = files_below(&destination)
        .into_iter()
        .map(|it| match it.contains("/man/man1/") {
            true => it + ".gz",
            false => it,
        })
        .collect();
    installed.push("/usr/share/man/man1/frontrowd.1.gz".to_owned());
    installed.sort();

    let (rpms, debs): (Vec<_>, Vec<_>) = wanted.iter().partition(|it| it.ends_with(".rpm"));
    let in_debs = debs.iter().flat_map(|it| files_of_deb(&here.join(it)));
    let mut in_debs: Vec<String> = in_debs.collect();
    in_debs.retain(|it| !is_debians_own(it));
    in_debs.sort();
    assert_eq!(in_debs, installed);

    let unpacked = scratch.path().join("unpacked");
    let deb = here.join(&wanted[5]);
    output(
        "dpkg-deb",
        &["-x", deb.to_str().unwrap(), unpacked.to_str().unwrap()],
    );
    let program = unpacked.join("usr/bin/frontrow");
    let said = output(program.to_str().unwrap(), &["--version"]);
    let commit = fs::read_to_string(Path::new(CHECKOUT).join("target/commit")).unwrap();
    assert_eq!(said, format!("frontrow {version} (commit {commit})\n"));
    let digits = commit.trim_end_matches('+');
    assert!(
        digits.len() == 12 && digits.chars().all(|it| it.is_ascii_hexdigit()),
        "{commit}"
    );

    let in_rpms = rpms.iter().flat_map(|it| files_of_rpm(&here.join(it)));
    let mut in_rpms: Vec<String> = in_rpms.collect();
    in_rpms.sort();
    assert_eq!(in_rpms, installed);
    for rpm in rpms {
        let rpm = here.join(rpm);
        output("rpm", &["-K", "--nosignature", rpm.to_str().unwrap()]);
    }
}

/// Of Fedora's akmods there is nothing in Debian: what they would build from is looked at.
#[test]
fn the_source_package_for_akmods_holds_the_modules_sources() {
    let scratch = tempfile::tempdir().unwrap();
    let out_argument = format!("PACKAGES_OUT={}", scratch.path().display());
    make(&["akmod", &out_argument]);
    let version = env!("CARGO_PKG_VERSION");
    let made = fs::read_dir(scratch.path()).unwrap();
    let made: Vec<_> = made.map(|it| it.unwrap().path()).collect();
    let [package] = made.as_slice() else {
        panic!("{made:?}");
    };
    let files = output("rpm", &["-qpl", package.to_str().unwrap()]);
    let archive = format!("frontrow-kmod-{version}.tar.gz");
    assert_eq!(files, format!("{archive}\nfrontrow-kmod.spec\n"));
    let script = format!(
        "cd {} && rpm2archive - < {} | tar xz && tar tzf {archive}",
        scratch.path().display(),
        package.display()
    );
    let listed = output("sh", &["-c", &script]);
    for directory in ["", "core/"] {
        let sources = Path::new(CHECKOUT).join("kernel/iosched").join(directory);
        let names = fs::read_dir(sources).unwrap();
        let names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
        for name in names.filter(|it| it == "Kbuild" || it.ends_with(".c")) {
            let path = format!("frontrow-{version}/{directory}{name}");
            assert!(listed.contains(&path), "{path}: {listed}");
        }
    }
}

/// Arch's checker of packages (namcap) is not in Debian, but its packages are made by functions of bash.
#[test]
fn archs_packages_hold_what_install_installs() {
    let scratch = tempfile::tempdir().unwrap();
    let destination = scratch.path().join("installed");
    let destination_argument = format!("DESTDIR={}", destination.display());
    for target in ["install", "install-lab"] {
        make(&[target, &destination_argument, "PREFIX=/usr"]);
    }
    let mut packaged = Vec::new();
    for package in ["frontrow", "frontrow-dkms", "frontrow-lab"] {
        let directory = scratch.path().join(package);
        let script = format!(
            "set -eu; export PROFILE=debug; startdir=packaging; pkgdir={}; . packaging/PKGBUILD; package_{package} >&2; echo $pkgver",
            directory.display()
        );
        let version = output("bash", &["-c", &script]);
        assert_eq!(version.trim(), env!("CARGO_PKG_VERSION"));
        packaged.extend(files_below(&directory));
    }
    packaged.sort();
    assert_eq!(packaged, files_below(&destination));
}

/// What is against Debian's policy on purpose is in packaging/deb/*.lintian, each with its reason.
#[test]
#[ignore = "lintian is installed by make stress-guests"]
fn debians_checker_has_nothing_to_say() {
    let scratch = tempfile::tempdir().unwrap();
    let made = packages(scratch.path());
    let debs = made.keys().filter(|it| it.ends_with(".deb"));
    let debs: Vec<_> = debs.map(|it| scratch.path().join(it)).collect();
    assert_eq!(debs.len(), 3);
    let mut arguments = vec!["--fail-on", "error,warning"];
    arguments.extend(debs.iter().map(|it| it.to_str().unwrap()));
    assert_eq!(output("lintian", &arguments), "");
}

/// DKMS builds the module for a kernel that is installed later, nothing is enabled, and after the
/// purge nothing is left. The packages for other distributions do the same with their own tool.
fn lives_and_goes(release: &str) {
    let scratch = tempfile::tempdir().unwrap();
    packages(&scratch.path().join("packages"));
    let debian = Debian::new(release);
    debian.copy_in(&scratch.path().join("packages"), "packages");
    let lists = "find / -xdev -path /proc -prune -o -name '*frontrow*' -print | grep -v ^/packages";
    debian.run(&format!(
        "apt-get -qq update
         apt-get -qq -y --no-install-recommends install systemd kmod /packages/*.deb
         frontrow --version
         man=$(find /usr/share/man -name 'frontrow*.1.gz' | wc -l); test \"$man\" -gt 40
         getent passwd frontrow
         test -z \"$(find /etc/systemd -name '*frontrow*')\"
         apt-get -qq -y --no-install-recommends install linux-image-amd64 linux-headers-amd64
         kernel=$(basename $(ls -d /usr/src/linux-headers-*-amd64)); kernel=${{kernel#linux-headers-}}
         dkms status frontrow | grep \"$kernel.*installed\"
         find /lib/modules/$kernel/updates -name 'frontrow_iosched.ko*' | grep .
         apt-get -qq -y purge frontrow frontrow-dkms frontrow-lab
         left=$({lists} || true); echo \"$left\"; test -z \"$left\"
         test -z \"$(dkms status frontrow)\"

         apt-get -qq -y --no-install-recommends install rpm
         rpm -i --noplugins --nodeps /packages/*.rpm
         dkms status frontrow | grep \"$kernel.*installed\"
         rpm -e --noplugins frontrow frontrow-dkms frontrow-lab
         left=$({lists} || true); echo \"$left\"; test -z \"$left\"
         test -z \"$(dkms status frontrow)\""
    ));
}

#[test]
#[ignore = "takes half a gigabyte from the network and root: make stress-guests"]
fn debian_12_builds_the_module_for_each_kernel_and_purge_leaves_nothing() {
    lives_and_goes("bookworm");
}

#[test]
#[ignore = "takes half a gigabyte from the network and root: make stress-guests"]
fn debian_13_builds_the_module_for_each_kernel_and_purge_leaves_nothing() {
    lives_and_goes("trixie");
}
