//! Disks that QEMU emulates.

use crate::test_bed::{await_some, read};
use crate::{Failure, Outcome, TestBed};
use std::fs;
use std::path::Path;

/// A disk of QEMU.
#[derive(Debug)]
pub struct Disk {
    /// Name of its driver, with the difference from others of the same driver.
    pub name: &'static str,
    /// Size in MiB, by which the guest identifies the disk.
    pub mib: u64,
    /// QEMU devices between the machine and the disk, in the order of their creation.
    pub controllers: &'static [&'static str],
    /// QEMU device of the disk, without its drive.
    pub device: &'static str,
    /// Directories below `/sys/bus` that a kernel with all of its drivers has.
    drivers: &'static [&'static str],
}

/// Rate limit of each disk, which is low enough to make the disk the bottleneck.
pub const BYTES_PER_S: u64 = 20_000_000;

/// All disks of the trials. The card's size is a power of two, since QEMU takes no other.
pub const DISKS: [Disk; 8] = [
    Disk {
        name: "virtio-blk",
        mib: 1025,
        controllers: &[],
        device: "virtio-blk-pci,num-queues=1",
        drivers: &["virtio/drivers/virtio_blk"],
    },
    Disk {
        name: "virtio-blk, 4 queues",
        mib: 1026,
        controllers: &[],
        device: "virtio-blk-pci,num-queues=4",
        drivers: &["virtio/drivers/virtio_blk"],
    },
    Disk {
        name: "virtio-scsi",
        mib: 1027,
        controllers: &["virtio-scsi-pci,id=scsi"],
        device: "scsi-hd,bus=scsi.0",
        drivers: &["virtio/drivers/virtio_scsi", "scsi/drivers/sd"],
    },
    Disk {
        name: "NVMe",
        mib: 1028,
        controllers: &[],
        device: "nvme,serial=frontrow",
        drivers: &["pci/drivers/nvme"],
    },
    Disk {
        name: "AHCI",
        mib: 1029,
        controllers: &["ahci,id=ahci"],
        device: "ide-hd,bus=ahci.0",
        drivers: &["pci/drivers/ahci", "scsi/drivers/sd"],
    },
    Disk {
        name: "USB storage",
        mib: 1030,
        controllers: &["qemu-xhci,id=usb"],
        device: "usb-storage,bus=usb.0",
        drivers: &[
            "pci/drivers/xhci_hcd",
            "usb/drivers/usb-storage",
            "scsi/drivers/sd",
        ],
    },
    Disk {
        name: "UAS",
        mib: 1031,
        controllers: &["qemu-xhci,id=usb3", "usb-uas,id=uas,bus=usb3.0"],
        device: "scsi-hd,bus=uas.0",
        drivers: &["pci/drivers/xhci_hcd", "usb/drivers/uas", "scsi/drivers/sd"],
    },
    Disk {
        name: "SD card",
        mib: 1024,
        controllers: &["sdhci-pci"],
        device: "sd-card",
        drivers: &["pci/drivers/sdhci-pci", "mmc/drivers/mmcblk"],
    },
];

/// Disks that are soldered to a phone or a laptop, of the trial that has a QEMU with them. An eMMC's
/// size is a power of two, as a card's.
pub const SOLDERED: [Disk; 2] = [
    Disk {
        name: "UFS",
        mib: 1032,
        controllers: &["ufs,id=ufs"],
        device: "ufs-lu,bus=ufs",
        drivers: &["pci/drivers/ufshcd", "scsi/drivers/sd"],
    },
    Disk {
        name: "eMMC",
        mib: 1024,
        controllers: &["sdhci-pci"],
        device: "emmc",
        drivers: &["pci/drivers/sdhci-pci", "mmc/drivers/mmcblk"],
    },
];

/// Modules of [`SOLDERED`].
pub(crate) const SOLDERED_MODULES: [&str; 4] = ["sd_mod", "ufshcd_pci", "mmc_block", "sdhci_pci"];

/// Modules of the drivers and of the file systems that few trials use. Those of USB storage come
/// before their host's, which then probes with both of them there.
pub(crate) const MODULES: [&str; 14] = [
    "virtio_pci",
    "virtio_blk",
    "virtio_scsi",
    "sd_mod",
    "nvme",
    "ahci",
    "usb_storage",
    "uas",
    "xhci_pci",
    "mmc_block",
    "sdhci_pci",
    "xfs",
    "f2fs",
    "btrfs",
];

const BUSES: &str = "/sys/bus";
const SECTOR_BYTES: u64 = 512;

impl Disk {
    /// The disk of this name.
    pub(crate) fn named(name: &str) -> Outcome<&'static Disk> {
        let found = DISKS.iter().find(|it| it.name == name);
        found.ok_or_else(|| Failure::new(format!("there is no disk {name}")))
    }

    /// A test bed on the disk; None, after saying so, if the kernel has not all of its drivers.
    pub(crate) fn bed(&self, bed: &TestBed) -> Outcome<Option<TestBed>> {
        let has = |driver: &&&str| Path::new(BUSES).join(driver).exists();
        if let Some(missing) = self.drivers.iter().find(|it| !has(it)) {
            bed.remark(format!(
                "{} is passed over: the kernel has no {missing}",
                self.name
            ));
            return Ok(None);
        }
        let device = await_some(
            || self.device(),
            || format!("{} does not appear", self.name),
        )?;
        let bed = TestBed {
            device,
            ..bed.clone()
        };
        bed.await_device()?;
        Ok(Some(bed))
    }

    fn device(&self) -> Outcome<Option<String>> {
        let blocks = Path::new("/sys/block");
        let wanted = (self.mib * (1 << 20) / SECTOR_BYTES).to_string();
        for entry in fs::read_dir(blocks).map_err(Failure::io("list", blocks))? {
            let entry = entry.map_err(Failure::io("list", blocks))?;
            let size = read(&entry.path().join("size").to_string_lossy())?;
            if size.trim() == wanted {
                return Ok(Some(entry.file_name().to_string_lossy().into_owned()));
            }
        }
        Ok(None)
    }
}
