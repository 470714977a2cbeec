//! Type information from a file is taken for the running kernel's only if it is.

use crate::kernel::Kernel;
use module::abi::{Error, check_running};

/// `/proc/kallsyms` as those see it who may not know addresses.
const SYMBOLS: &str = "\
0000000000000000 T submit_bio
0000000000000000 t helper.isra.0
0000000000000000 D jiffies
0000000000000000 t of_module\t[ext4]
";

fn btf(functions: &[&str]) -> Vec<u8> {
    let mut kernel = Kernel::new();
    for name in functions {
        kernel.function(name, "void ()");
    }
    kernel.btf()
}

#[test]
fn a_file_whose_functions_the_kernel_has_is_its_own() {
    check_running(&btf(&["submit_bio", "helper"]), SYMBOLS).unwrap();
}

#[test]
fn a_neighbours_file_is_refused_by_name() {
    let other = btf(&["submit_bio", "helper", "new_helper", "jiffies"]);
    let error = check_running(&other, SYMBOLS).unwrap_err();
    assert!(matches!(error, Error::OtherKernel { lacking: 2, .. }));
    let sentence = error.to_string();
    assert!(sentence.contains("such as new_helper"), "{sentence}");
}

#[test]
fn nothing_is_taken_for_its_own_where_functions_are_not_listed() {
    let error = check_running(&btf(&["submit_bio"]), "").unwrap_err();
    assert!(matches!(error, Error::NoSymbols), "{error}");
}

#[test]
fn what_is_no_type_information_is_refused() {
    let error = check_running(b"text", SYMBOLS).unwrap_err();
    assert!(matches!(error, Error::NoBtf(_)), "{error}");
}
