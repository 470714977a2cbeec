//! System calls that a confined process gets EPERM for, by a seccomp filter.
//!
//! The list is of what is forbidden, not of what is allowed: the C library, SQLite and the terminal are free to
//! use other calls tomorrow.

use crate::confine::{Error, Programs};
use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter_all_threads,
};
use std::collections::BTreeMap;
use std::env::consts::ARCH;

/// Forbidden to every confined process.
const NEVER: &[c_long] = &[
    // Others, by sockets.
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    // The memory and the descriptors of other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // The kernel.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    // Its keys, and the parts of it that most holes were found in.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // What is mounted, and namespaces, in which a user has capabilities.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    // Files by other ways than their paths.
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_mknodat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mknod,
    // The ports of devices.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// What Landlock leaves to the owner of a file, wherever that is: its mode, its owner, its attributes, and
/// before 6.2 its length. Each has a call for open files, which stays.
const BY_PATH: &[c_long] = &[
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_fchownat,
    libc::SYS_truncate,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    SYS_SETXATTRAT,
    SYS_REMOVEXATTRAT,
    SYS_FILE_SETATTR,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
];

/// Calls since 6.6, 6.13 and 6.17, the same on all architectures.
const SYS_FCHMODAT2: c_long = 452;
const SYS_SETXATTRAT: c_long = 463;
const SYS_REMOVEXATTRAT: c_long = 466;
const SYS_FILE_SETATTR: c_long = 469;

/// How other processes get a signal.
const SIGNALS: [c_long; 4] = [
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_send_signal,
];

/// How they get one, and this process one from itself.
const SIGNALS_BY_PROCESS: [c_long; 2] = [libc::SYS_kill, libc::SYS_tgkill];

/// How a program is started.
const STARTS: &[c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
];

/// Requests by which a process types into the terminal that root works at (TIOCSTI, TIOCLINUX).
const TYPES: [u64; 2] = [0x5412, 0x541c];

/// Commands of `bpf(2)` for maps that are open: BPF_MAP_LOOKUP_ELEM, UPDATE_ELEM, DELETE_ELEM, GET_NEXT_KEY,
/// and BPF_OBJ_GET_INFO_BY_FD.
const ON_OPEN_MAPS: [u64; 5] = [1, 2, 3, 4, 15];

/// Bit of a call's number by which a process of x86-64 calls as one of x32, and the numbers that only
/// these have.
#[cfg(target_arch = "x86_64")]
const X32: (c_long, std::ops::RangeInclusive<c_long>) = (0x4000_0000, 512..=547);

/// What is needed besides.
pub(super) struct Needs {
    pub(super) programs: Programs,
    pub(super) may_signal: bool,
    pub(super) has_children: bool,
    /// Whether it opens files of its own only.
    pub(super) keeps_to_its_files: bool,
}

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Forbids it to all threads. Returns whether this kernel can.
pub(super) fn forbid(needs: &Needs) -> Result<bool, Error> {
    let Ok(machine) = TargetArch::try_from(ARCH) else {
        return Ok(false);
    };
    let mut filters = vec![(rules(needs).map_err(failed)?, libc::EPERM)];
    if !needs.has_children {
        // Its arguments are in memory, where no filter sees whether they ask for a thread. The C library takes
        // clone() where a kernel does not know it.
        filters.push((
            BTreeMap::from([(libc::SYS_clone3, Vec::new())]),
            libc::ENOSYS,
        ));
    }
    for (rules, errno) in filters {
        let refused = SeccompAction::Errno(errno as u32);
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, machine);
        let program: BpfProgram = filter.and_then(BpfProgram::try_from).map_err(failed)?;
        match apply_filter_all_threads(&program) {
            Ok(()) => {}
            Err(seccompiler::Error::Seccomp(error)) if is_unknown(&error) => return Ok(false),
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(true)
}

/// What a kernel without seccomp says, or an emulator in place of one.
fn is_unknown(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS))
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Calls(error.to_string())
}

fn rules(needs: &Needs) -> Result<Rules, seccompiler::BackendError> {
    let always = |numbers: &[c_long]| {
        numbers
            .iter()
            .map(|it| (*it, Vec::new()))
            .collect::<Rules>()
    };
    let mut rules = always(NEVER);
    if needs.keeps_to_its_files {
        rules.extend(always(BY_PATH));
    }
    if !needs.may_signal {
        rules.extend(always(&SIGNALS));
        for number in SIGNALS_BY_PROCESS {
            let own = u64::from(std::process::id());
            rules.insert(number, vec![all([argument(0, SeccompCmpOp::Ne, own)?])?]);
        }
    }
    if !needs.has_children {
        rules.extend(always(STARTS));
        let thread = SeccompCmpOp::MaskedEq(libc::CLONE_THREAD as u64);
        rules.insert(libc::SYS_clone, vec![all([argument(0, thread, 0)?])?]);
    }
    let mut types = Vec::new();
    for request in TYPES {
        types.push(all([argument(1, SeccompCmpOp::Eq, request)?])?);
    }
    rules.insert(libc::SYS_ioctl, types);
    match needs.programs {
        Programs::None => rules.extend(always(&[libc::SYS_bpf, libc::SYS_perf_event_open])),
        Programs::Loaded => {
            let others = ON_OPEN_MAPS.map(|it| argument(0, SeccompCmpOp::Ne, it));
            let others: Result<Vec<_>, _> = others.into_iter().collect();
            rules.insert(libc::SYS_bpf, vec![all(others?)?]);
            rules.extend(always(&[libc::SYS_perf_event_open]));
        }
        Programs::Attached => {}
    }
    #[cfg(target_arch = "x86_64")]
    {
        let (bit, only) = X32;
        let same: Rules = rules
            .iter()
            .map(|(number, it)| (number | bit, it.clone()))
            .collect();
        rules.extend(same);
        rules.extend(only.map(|number| (number | bit, Vec::new())));
    }
    Ok(rules)
}

/// A rule that holds where all its conditions do.
fn all(
    conditions: impl IntoIterator<Item = SeccompCondition>,
) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(conditions.into_iter().collect())
}

fn argument(
    place: u8,
    compares: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(place, SeccompCmpArgLen::Dword, compares, value)
}
