//! Type information (BTF) of the kernel and of its modules.

use super::Error;
use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where the kernel shows its own type information and that of its modules, by their names.
const DIRECTORY: &str = "/sys/kernel/btf";

/// Whether the running kernel shows its types.
pub fn are_shown() -> bool {
    Path::new(DIRECTORY).join("vmlinux").exists()
}

/// Type information of the running kernel, or of one of its modules beside that.
pub struct Btf(*mut libbpf_sys::btf);

impl Btf {
    /// That of the running kernel.
    pub fn of_kernel() -> Result<Btf, Error> {
        // SAFETY: it takes nothing and gives an object of its own.
        let btf = unsafe { libbpf_sys::btf__load_vmlinux_btf() };
        if btf.is_null() {
            return Err(Error::NoBtf);
        }
        Ok(Btf(btf))
    }

    /// Whether it has a type or function of this name and kind.
    pub fn has(&self, name: &str, kind: u32) -> bool {
        let Ok(name) = CString::new(name) else {
            return false;
        };
        // SAFETY: both pointers are valid for the call.
        unsafe { libbpf_sys::btf__find_by_name_kind(self.0, name.as_ptr(), kind) > 0 }
    }

    /// Names of all types and functions that loaded modules have beside the kernel's.
    pub fn names_in_modules(&self) -> HashSet<String> {
        let entries = fs::read_dir(DIRECTORY).into_iter().flatten();
        let files =
            entries.filter_map(|entry| CString::new(entry.ok()?.file_name().as_bytes()).ok());
        let mut names = HashSet::new();
        for module in files.filter(|name| name.as_c_str() != c"vmlinux") {
            // SAFETY: both pointers are valid for the call.
            let module = unsafe { libbpf_sys::btf__load_module_btf(module.as_ptr(), self.0) };
            if !module.is_null() {
                Btf(module).add_names(self.count(), &mut names);
            }
        }
        names
    }

    /// Number of types, those of the kernel below a module's included.
    fn count(&self) -> u32 {
        // SAFETY: the object lives.
        unsafe { libbpf_sys::btf__type_cnt(self.0) }
    }

    fn add_names(&self, first: u32, names: &mut HashSet<String>) {
        for id in first..self.count() {
            // SAFETY: the object lives and has a type of this number; a name is terminated.
            let name = unsafe {
                let kind = libbpf_sys::btf__type_by_id(self.0, id);
                CStr::from_ptr(libbpf_sys::btf__name_by_offset(self.0, (*kind).name_off))
            };
            names.insert(name.to_string_lossy().into_owned());
        }
    }
}

impl Drop for Btf {
    fn drop(&mut self) {
        // SAFETY: this object owns it and is being dropped.
        unsafe { libbpf_sys::btf__free(self.0) };
    }
}
