//! Host Initiated Defrag, with attributes in a tree that is laid out as the kernel's.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use sys::device::Device;
use sys::device::hid::{Hid, State};

const DISK: &str = "sys/devices/platform/soc/1d84000.ufshc/host0/target0:0:0/0:0:0:0/block/sda";
const HID: &str = "sys/devices/platform/soc/1d84000.ufshc/hid";

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn ufs(root: &Path) -> PathBuf {
    fs::create_dir_all(root.join(DISK).join("queue")).unwrap();
    fs::create_dir_all(root.join("sys/class/block")).unwrap();
    symlink(root.join(DISK), root.join("sys/class/block/sda")).unwrap();
    for (attribute, text) in [
        ("state", "idle\n"),
        ("fragmented_size", "4294967295\n"),
        ("defrag_size", "4294967295\n"),
        ("progress_ratio", "0\n"),
        ("analysis_trigger", ""),
        ("defrag_trigger", ""),
    ] {
        write(root, &format!("{HID}/{attribute}"), text);
    }
    root.join(HID)
}

#[test]
fn they_are_found_above_the_disk_and_written_as_the_kernel_wants_them() {
    let root = tempfile::tempdir().unwrap();
    let at = ufs(root.path());
    let device = Device::resolve(root.path(), "sda").unwrap();
    let hid = Hid::of(&device).unwrap();
    let says = |attribute: &str| fs::read_to_string(at.join(attribute)).unwrap();
    assert_eq!(hid.state().unwrap(), State::Idle);
    assert_eq!(hid.fragmented_bytes().unwrap(), None);
    hid.analyse().unwrap();
    assert_eq!(says("analysis_trigger"), "enable");
    write(root.path(), &format!("{HID}/fragmented_size"), "256\n");
    assert_eq!(hid.fragmented_bytes().unwrap(), Some(1 << 20));
    let size = hid.defragment(Some(40_960)).unwrap();
    assert_eq!(
        (says("defrag_size"), says("defrag_trigger")),
        ("10".into(), "enable".into())
    );
    hid.stop(Some(size)).unwrap();
    assert_eq!(says("defrag_size"), "4294967295");
    assert_eq!(says("defrag_trigger"), "disable");
}

#[test]
fn a_device_without_them_has_none_and_what_is_not_known_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    let at = ufs(root.path());
    let device = Device::resolve(root.path(), "sda").unwrap();
    let hid = Hid::of(&device).unwrap();
    write(root.path(), &format!("{HID}/state"), "on_holiday\n");
    assert!(hid.state().unwrap_err().to_string().contains("on_holiday"));
    write(root.path(), &format!("{HID}/progress_ratio"), "-1\n");
    assert!(hid.progress_percent().is_err());
    fs::remove_dir_all(at).unwrap();
    assert_eq!(Hid::of(&device), None);
}
