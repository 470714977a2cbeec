//! Loop devices, which are where an image is mounted.

use std::fs;
use std::io;
use std::path::Path;

/// Whether a loop device below `root` has `image` as its file and is mounted for writing. `image`
/// is an absolute path without links.
pub fn is_mounted_for_writing(root: &Path, image: &Path) -> io::Result<bool> {
    let Ok(disks) = fs::read_dir(root.join("sys/block")) else {
        return Ok(false);
    };
    for disk in disks {
        let disk = disk?.path();
        let Ok(backing) = fs::read_to_string(disk.join("loop/backing_file")) else {
            continue;
        };
        if Path::new(backing.trim_end_matches('\n')) != image {
            continue;
        }
        let number = fs::read_to_string(disk.join("dev"))?;
        let parts = number.trim().split_once(':');
        let parts =
            parts.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        let Some((major, minor)) = parts else {
            continue;
        };
        if sys::device::is_mounted_for_writing(root, major, minor).map_err(io::Error::other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(options: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("sys/block/vda/dev", "254:0\n");
        write("sys/block/loop3/dev", "7:3\n");
        write("sys/block/loop3/loop/backing_file", "/images/phone.img\n");
        let line = format!("36 35 7:3 / /mnt rw - ext4 /dev/loop3 {options}\n");
        write("proc/self/mountinfo", &line);
        root
    }

    #[test]
    fn an_image_is_found_where_a_loop_device_has_it_mounted_for_writing() {
        let root = machine("rw,noatime");
        let is = |image: &str| is_mounted_for_writing(root.path(), Path::new(image)).unwrap();
        assert!(is("/images/phone.img"));
        assert!(!is("/images/other.img"));
        let root = machine("ro");
        let image = Path::new("/images/phone.img");
        assert!(!is_mounted_for_writing(root.path(), image).unwrap());
    }
}
