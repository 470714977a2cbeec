//! BTF is found in every file a kernel may come in.

use liblzma::stream::{LzmaOptions, Stream};
use liblzma::write::XzEncoder;
use object::write::Object;
use object::{Architecture, BinaryFormat, Endianness, SectionKind};
use std::io::Write;

const BTF: &[u8] = b"\x9f\xeb\x01\x00 the type information of a kernel";

fn elf(section: &str) -> Vec<u8> {
    let mut elf = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let id = elf.add_section(Vec::new(), section.into(), SectionKind::ReadOnlyData);
    elf.append_section_data(id, BTF, 1);
    elf.write().unwrap()
}

fn gzip(elf: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(elf).unwrap();
    encoder.finish().unwrap()
}

fn xz(elf: &[u8]) -> Vec<u8> {
    let mut encoder = XzEncoder::new(Vec::new(), 0);
    encoder.write_all(elf).unwrap();
    encoder.finish().unwrap()
}

fn lzma(elf: &[u8]) -> Vec<u8> {
    let options = LzmaOptions::new_preset(0).unwrap();
    let stream = Stream::new_lzma_encoder(&options).unwrap();
    let mut encoder = XzEncoder::new_stream(Vec::new(), stream);
    encoder.write_all(elf).unwrap();
    encoder.finish().unwrap()
}

fn zstd(elf: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(elf, ruzstd::encoding::CompressionLevel::Fastest)
}

fn lz4(elf: &[u8]) -> Vec<u8> {
    let block = lz4_flex::block::compress(elf);
    let length = u32::try_from(block.len()).unwrap();
    [&b"\x02\x21\x4c\x18"[..], &length.to_le_bytes(), &block].concat()
}

/// As the kernel's build lays it out: code, the payload, its expanded length, more code.
fn boot_image(payload: &[u8]) -> Vec<u8> {
    [
        &b"MZ\x1f\x8b\x08 setup code"[..],
        payload,
        &[1, 0, 0, 0],
        &[0xcc; 64],
    ]
    .concat()
}

/// BTF with four bytes of types and these strings.
fn btf(strings: &[u8]) -> Vec<u8> {
    let mut btf = b"\x9f\xeb\x01\x00".to_vec();
    for word in [24, 0, 4, 4, strings.len() as u32] {
        btf.extend(word.to_le_bytes());
    }
    [&btf, &[0; 4][..], strings].concat()
}

/// As an arm64 kernel is booted: no headers but its own, and what begins like BTF and is none.
fn flat(btf: &[u8]) -> Vec<u8> {
    let mut kernel = vec![0; 64];
    kernel[56..60].copy_from_slice(b"ARM\x64");
    [&kernel, BTF, &[0xcc; 13], btf, &[0xcc; 64]].concat()
}

#[test]
fn kernels_without_headers_are_searched() {
    let btf = btf(b"\0task_struct\0");
    assert_eq!(&*module::abi::btf_section(&flat(&btf)).unwrap(), btf);
    let packed = boot_image(&gzip(&flat(&btf)));
    assert_eq!(&*module::abi::btf_section(&packed).unwrap(), btf);
    let error = module::abi::btf_section(&flat(&btf[..btf.len() - 1])).unwrap_err();
    assert!(error.to_string().contains("looks like BTF"), "{error}");
}

#[test]
fn raw_btf_is_taken_as_it_is() {
    assert_eq!(&*module::abi::btf_section(BTF).unwrap(), BTF);
}

#[test]
fn elf_files_have_a_section() {
    assert_eq!(&*module::abi::btf_section(&elf(".BTF")).unwrap(), BTF);
    let error = module::abi::btf_section(&elf(".rodata"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("no .BTF section"), "{error}");
}

#[test]
fn boot_images_of_every_compression_are_unpacked() {
    let elf = elf(".BTF");
    for (name, compress) in [
        ("gzip", gzip as fn(&[u8]) -> Vec<u8>),
        ("xz", xz),
        ("lzma", lzma),
        ("zstd", zstd),
        ("lz4", lz4),
    ] {
        let image = boot_image(&compress(&elf));
        let found = module::abi::btf_section(&image);
        assert_eq!(
            &*found.unwrap_or_else(|error| panic!("{name}: {error}")),
            BTF
        );
        let cut = &image[..image.len() / 2];
        assert!(module::abi::btf_section(cut).is_err(), "{name}");
    }
}
