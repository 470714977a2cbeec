//! Which declarations of the block layer an I/O scheduler needs that no public header
//! has, and what is known to differ between kernels.

use crate::abi::ctype::Printer;
use crate::abi::{Error, Exports};
use btf_rs::{Btf, Func, FuncProto, Struct, Type};
use std::collections::BTreeSet;

/// Signatures that a function or operation may have, each with the macro that tells the
/// module which of them it met. A signature belongs here once the module implements it.
struct Known {
    name: &'static str,
    signatures: &'static [(&'static str, Option<&'static str>)],
}

const fn known(
    name: &'static str,
    signatures: &'static [(&'static str, Option<&'static str>)],
) -> Known {
    Known { name, signatures }
}

/// Structures of `block/elevator.h` and `block/blk-mq.h`, each after those it contains,
/// with the members that the scheduler uses.
const STRUCTURES: [(&str, &[&str]); 5] = [
    ("blk_mq_alloc_data", &["q", "shallow_depth", "hctx"]),
    ("elevator_mq_ops", &[]),
    ("elv_fs_entry", &["attr", "show", "store"]),
    (
        "elevator_type",
        &["ops", "elevator_attrs", "elevator_name", "elevator_owner"],
    ),
    ("elevator_queue", &["type", "elevator_data", "kobj"]),
];

/// Operations the scheduler implements.
const OPERATIONS: [Known; 20] = [
    known(
        "init_sched",
        &[
            ("int (struct request_queue *, struct elevator_type *)", None),
            (
                "int (struct request_queue *, struct elevator_queue *)",
                Some("FRONTROW_ABI_INIT_SCHED_EQ"),
            ),
        ],
    ),
    known("exit_sched", &[("void (struct elevator_queue *)", None)]),
    known(
        "init_hctx",
        &[("int (struct blk_mq_hw_ctx *, unsigned int)", None)],
    ),
    known(
        "exit_hctx",
        &[("void (struct blk_mq_hw_ctx *, unsigned int)", None)],
    ),
    known(
        "depth_updated",
        &[
            ("void (struct blk_mq_hw_ctx *)", None),
            (
                "void (struct request_queue *)",
                Some("FRONTROW_ABI_DEPTH_UPDATED_QUEUE"),
            ),
        ],
    ),
    known(
        "allow_merge",
        &[(
            "bool (struct request_queue *, struct request *, struct bio *)",
            None,
        )],
    ),
    known(
        "bio_merge",
        &[(
            "bool (struct request_queue *, struct bio *, unsigned int)",
            None,
        )],
    ),
    known(
        "request_merge",
        &[(
            "int (struct request_queue *, struct request **, struct bio *)",
            None,
        )],
    ),
    known(
        "request_merged",
        &[(
            "void (struct request_queue *, struct request *, enum elv_merge)",
            None,
        )],
    ),
    known(
        "requests_merged",
        &[(
            "void (struct request_queue *, struct request *, struct request *)",
            None,
        )],
    ),
    known(
        "limit_depth",
        &[("void (blk_opf_t, struct blk_mq_alloc_data *)", None)],
    ),
    known("prepare_request", &[("void (struct request *)", None)]),
    known("finish_request", &[("void (struct request *)", None)]),
    known(
        "insert_requests",
        &[
            (
                "void (struct blk_mq_hw_ctx *, struct list_head *, bool)",
                None,
            ),
            (
                "void (struct blk_mq_hw_ctx *, struct list_head *, blk_insert_t)",
                Some("FRONTROW_ABI_INSERT_BLK_FLAGS"),
            ),
        ],
    ),
    known(
        "dispatch_request",
        &[("struct request *(struct blk_mq_hw_ctx *)", None)],
    ),
    known("has_work", &[("bool (struct blk_mq_hw_ctx *)", None)]),
    known(
        "completed_request",
        &[("void (struct request *, u64)", None)],
    ),
    known("requeue_request", &[("void (struct request *)", None)]),
    known(
        "former_request",
        &[(
            "struct request *(struct request_queue *, struct request *)",
            None,
        )],
    ),
    known(
        "next_request",
        &[(
            "struct request *(struct request_queue *, struct request *)",
            None,
        )],
    ),
];

/// Exported functions of `block/elevator.h` and `block/blk-mq-sched.h`.
const FUNCTIONS: [Known; 7] = [
    known("elv_register", &[("int (struct elevator_type *)", None)]),
    known("elv_unregister", &[("void (struct elevator_type *)", None)]),
    known(
        "elv_rqhash_add",
        &[("void (struct request_queue *, struct request *)", None)],
    ),
    known(
        "elv_rqhash_del",
        &[("void (struct request_queue *, struct request *)", None)],
    ),
    known(
        "blk_mq_sched_try_merge",
        &[(
            "bool (struct request_queue *, struct bio *, unsigned int, struct request **)",
            None,
        )],
    ),
    known(
        "blk_mq_sched_try_insert_merge",
        &[(
            "bool (struct request_queue *, struct request *, struct list_head *)",
            None,
        )],
    ),
    known(
        "blk_mq_sched_mark_restart_hctx",
        &[("void (struct blk_mq_hw_ctx *)", None)],
    ),
];

/// Where `init_sched` gets the `elevator_type`, the scheduler allocates its queue itself;
/// where it gets the `elevator_queue`, the block layer has, and exports no allocator.
const ELEVATOR_ALLOC: Known = known(
    "elevator_alloc",
    &[(
        "struct elevator_queue *(struct request_queue *, struct elevator_type *)",
        None,
    )],
);

/// Absent from kernels built without writeback throttling (`CONFIG_BLK_WBT`).
const WRITEBACK_THROTTLING: [Known; 2] = [
    known(
        "wbt_disable_default",
        &[
            ("void (struct request_queue *)", None),
            ("void (struct gendisk *)", Some("FRONTROW_ABI_WBT_GENDISK")),
        ],
    ),
    known(
        "wbt_enable_default",
        &[
            ("void (struct request_queue *)", None),
            ("void (struct gendisk *)", Some("FRONTROW_ABI_WBT_GENDISK")),
        ],
    ),
];

/// Symbols that the module does without where a kernel keeps them from modules, as phones with
/// Android's stable interface do, each with the macro that says so.
const DISPENSABLE: [(&str, &str); 4] = [
    (BIO_BLKCG_CSS, "FRONTROW_ABI_NO_BIO_BLKCG_CSS"),
    ("blk_mq_run_hw_queues", "FRONTROW_ABI_NO_RUN_HW_QUEUES"),
    (
        "__tracepoint_block_rq_insert",
        "FRONTROW_ABI_NO_TRACE_RQ_INSERT",
    ),
    (
        "register_tracepoint_module_notifier",
        "FRONTROW_ABI_NO_TRACEPOINT_NOTIFIER",
    ),
];

/// Cgroup of a bio; replaced by the two offsets that it uses.
const BIO_BLKCG_CSS: &str = "bio_blkcg_css";

/// Headers that declare all of [`PUBLIC`].
const INCLUDES: [&str; 9] = [
    "linux/blk-mq.h",
    "linux/blkdev.h",
    "linux/build_bug.h",
    "linux/kobject.h",
    "linux/list.h",
    "linux/mutex.h",
    "linux/stddef.h",
    "linux/sysfs.h",
    "linux/types.h",
];

/// Types from public headers that a private structure may contain or a function take by
/// value. One that is not here might be private: better no header than a wrong guess.
const PUBLIC: [&str; 22] = [
    "atomic_t",
    "blk_mq_req_flags_t",
    "blk_opf_t",
    "blk_status_t",
    "bool",
    "gfp_t",
    "loff_t",
    "req_flags_t",
    "sector_t",
    "size_t",
    "spinlock_t",
    "ssize_t",
    "struct attribute",
    "struct hlist_head",
    "struct kobject",
    "struct list_head",
    "struct mutex",
    "struct rb_root",
    "u16",
    "u32",
    "u64",
    "umode_t",
];

/// The whole header. Without `exports` every function counts as exported.
pub fn header(btf: &Btf, exports: Option<&Exports>) -> Result<String, Error> {
    let mut header = Header::new(btf, exports);
    header.merge_results()?;
    header.insert_flags()?;
    for (name, members) in STRUCTURES {
        header.structure(name, members)?;
    }
    header.operations()?;
    header.elevator_flags()?;
    for function in &FUNCTIONS {
        header.function(function)?;
    }
    if !header.macros.contains("FRONTROW_ABI_INIT_SCHED_EQ") {
        header.function(&ELEVATOR_ALLOC)?;
    }
    header.writeback_throttling()?;
    header.request_priority()?;
    header.queue_members()?;
    header.timers()?;
    header.dispensable()?;
    Ok(header.text())
}

struct Header<'a> {
    btf: &'a Btf,
    exports: Option<&'a Exports>,
    printer: Printer<'a>,
    /// Private types declared so far.
    declared: BTreeSet<String>,
    macros: BTreeSet<&'static str>,
    body: String,
}

impl<'a> Header<'a> {
    fn new(btf: &'a Btf, exports: Option<&'a Exports>) -> Self {
        Self {
            btf,
            exports,
            printer: Printer::new(btf),
            declared: BTreeSet::new(),
            macros: BTreeSet::new(),
            body: String::new(),
        }
    }

    fn text(&self) -> String {
        let lines = |prefix: &str, names: Vec<&str>, suffix: &str| {
            names
                .iter()
                .map(|name| format!("{prefix}{name}{suffix}\n"))
                .collect::<String>()
        };
        let includes = lines("#include <", INCLUDES.to_vec(), ">");
        let macros = lines("#define ", self.macros.iter().copied().collect(), " 1");
        let forward = lines(
            "",
            self.printer.pointed.iter().map(String::as_str).collect(),
            ";",
        );
        format!(
            "/* SPDX-License-Identifier: GPL-2.0-only */\n\
             /* Made from one kernel's BTF, and right for that kernel only. */\n\
             #ifndef FRONTROW_ABI_H\n#define FRONTROW_ABI_H\n\n\
             {includes}\n{macros}\n{forward}\n{}\n#endif /* FRONTROW_ABI_H */\n",
            self.body
        )
    }

    /// `enum elv_merge`: what `request_merge` returns.
    fn merge_results(&mut self) -> Result<(), Error> {
        let values = self
            .btf
            .resolve_types_by_name("elv_merge")?
            .into_iter()
            .find_map(|btf_type| match btf_type {
                Type::Enum(values) => Some(values),
                _ => None,
            })
            .ok_or_else(|| Error::Missing("enum elv_merge".into()))?;
        self.body += "enum elv_merge {\n";
        for value in &values.members {
            let name = self.btf.resolve_name(value)?;
            self.body += &format!("\t{name} = {},\n", value.val());
        }
        self.body += "};\n\n";
        self.declared.insert("enum elv_merge".into());
        Ok(())
    }

    /// `blk_insert_t`, where it exists. BTF holds no macros, so its one flag is carried here.
    fn insert_flags(&mut self) -> Result<(), Error> {
        let exists = self
            .btf
            .resolve_types_by_name("blk_insert_t")?
            .iter()
            .any(|btf_type| matches!(btf_type, Type::Typedef(_)));
        if exists {
            self.body += "typedef unsigned int __bitwise blk_insert_t;\n\
                 #define BLK_MQ_INSERT_AT_HEAD ((__force blk_insert_t)0x01)\n\n";
            self.declared.insert("blk_insert_t".into());
        }
        Ok(())
    }

    fn structure(&mut self, name: &str, members: &[&str]) -> Result<(), Error> {
        let body = self.find_structure(name)?;
        let names = self.member_names(&body)?;
        if let Some(missing) = members.iter().find(|member| !names.contains(**member)) {
            return Err(Error::Missing(format!("struct {name}.{missing}")));
        }
        let text = self.printer.structure(name, &body)?;
        self.check_held(&format!("struct {name}"))?;
        self.declared.insert(format!("struct {name}"));
        self.body += &text;
        self.body += "\n";
        Ok(())
    }

    fn operations(&mut self) -> Result<(), Error> {
        let body = self.find_structure("elevator_mq_ops")?;
        for operation in &OPERATIONS {
            let name = format!("elevator_mq_ops.{}", operation.name);
            let proto = self
                .operation(&body, operation.name)?
                .ok_or_else(|| Error::Missing(format!("struct {name}")))?;
            self.accept(operation, &name, &proto)?;
        }
        Ok(())
    }

    /// The prototype that the pointer `name` in `operations` has.
    fn operation(&self, operations: &Struct, name: &str) -> Result<Option<FuncProto>, Error> {
        for member in &operations.members {
            if self.btf.resolve_name(member)? != name {
                continue;
            }
            let Type::Ptr(pointer) = self.btf.resolve_chained_type(member)? else {
                return Ok(None);
            };
            return match self.btf.resolve_chained_type(&pointer)? {
                Type::FuncProto(proto) => Ok(Some(proto)),
                _ => Ok(None),
            };
        }
        Ok(None)
    }

    /// Where a scheduler says that its queues do without writeback throttling: a flag of
    /// the elevator in older kernels (6.12), of the request queue in newer ones (6.16),
    /// which have another meaning for the elevator's bit.
    fn elevator_flags(&mut self) -> Result<(), Error> {
        let queue = self.find_structure("elevator_queue")?;
        if self.queue_flag_exists("QUEUE_FLAG_DISABLE_WBT_DEF")? {
            self.macros.insert("FRONTROW_ABI_QUEUE_FLAG_DISABLE_WBT");
        } else if self.member_names(&queue)?.contains("flags") {
            self.macros.insert("FRONTROW_ABI_ELEVATOR_FLAGS");
            self.body += "#define ELEVATOR_FLAG_DISABLE_WBT 1\n\n";
        }
        Ok(())
    }

    /// The flags of a request queue are a nameless enum in kernels that have this one.
    fn queue_flag_exists(&self, flag: &str) -> Result<bool, Error> {
        for btf_type in self.btf.resolve_types_by_name("")? {
            let Type::Enum(values) = btf_type else {
                continue;
            };
            for value in &values.members {
                if self.btf.resolve_name(value)? == flag {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn writeback_throttling(&mut self) -> Result<(), Error> {
        for function in &WRITEBACK_THROTTLING {
            let exists = self.find_function(function.name)?.is_some();
            if !exists || !self.is_exported(function.name) {
                return Ok(());
            }
        }
        for function in &WRITEBACK_THROTTLING {
            self.function(function)?;
        }
        self.macros.insert("FRONTROW_ABI_HAS_WBT");
        Ok(())
    }

    /// Where a request's priority is: in older kernels (6.1) it has one of its own beside
    /// its bio's.
    fn request_priority(&mut self) -> Result<(), Error> {
        let request = self.find_structure("request")?;
        if self.member_names(&request)?.contains("ioprio") {
            self.macros.insert("FRONTROW_ABI_REQUEST_IOPRIO");
        }
        Ok(())
    }

    /// A lock of the queue's limits (6.9), and a limit of asynchronous requests that root
    /// sets for every scheduler (7.x).
    fn queue_members(&mut self) -> Result<(), Error> {
        let queue = self.find_structure("request_queue")?;
        let names = self.member_names(&queue)?;
        for (name, told) in [
            ("limits_lock", "FRONTROW_ABI_LIMITS_LOCK"),
            ("async_depth", "FRONTROW_ABI_ASYNC_DEPTH"),
        ] {
            if names.contains(name) {
                self.macros.insert(told);
            }
        }
        Ok(())
    }

    /// How a timer is set up: newer kernels (6.15) have no other way.
    fn timers(&mut self) -> Result<(), Error> {
        if self.find_function("hrtimer_setup")?.is_some() {
            self.macros.insert("FRONTROW_ABI_HAS_HRTIMER_SETUP");
        }
        Ok(())
    }

    fn dispensable(&mut self) -> Result<(), Error> {
        for (symbol, told) in DISPENSABLE {
            if self.is_exported(symbol) {
                continue;
            }
            self.macros.insert(told);
            if symbol == BIO_BLKCG_CSS {
                self.offset("blkcg_gq", "blkcg")?;
                self.offset("blkcg", "css")?;
            }
        }
        Ok(())
    }

    /// `FRONTROW_ABI_OFFSET_STRUCTURE_MEMBER`, in bytes.
    fn offset(&mut self, structure: &str, member: &str) -> Result<(), Error> {
        let body = self.find_structure(structure)?;
        let missing = || Error::Missing(format!("struct {structure}.{member}"));
        for candidate in &body.members {
            if self.btf.resolve_name(candidate)? == member {
                let bytes = candidate.bit_offset() / 8;
                let name = format!("{structure}_{member}").to_uppercase();
                self.body += &format!("#define FRONTROW_ABI_OFFSET_{name} {bytes}\n");
                return Ok(());
            }
        }
        Err(missing())
    }

    fn is_exported(&self, function: &str) -> bool {
        self.exports.is_none_or(|exports| exports.has(function))
    }

    fn function(&mut self, function: &Known) -> Result<(), Error> {
        let proto = self
            .find_function(function.name)?
            .ok_or_else(|| Error::Missing(format!("function {}", function.name)))?;
        self.accept(function, function.name, &proto)?;
        if !self.is_exported(function.name) {
            return Err(Error::NotExported(function.name.into()));
        }
        let text = self.printer.prototype(function.name, &proto)?;
        self.check_held(&format!("function {}", function.name))?;
        self.body += &format!("{text};\n");
        Ok(())
    }

    fn accept(&mut self, known: &Known, name: &str, proto: &FuncProto) -> Result<(), Error> {
        let found = self.printer.signature(proto)?;
        let Some((_, feature)) = known
            .signatures
            .iter()
            .find(|(signature, _)| *signature == found)
        else {
            let signatures: Vec<_> = known.signatures.iter().map(|known| known.0).collect();
            return Err(Error::Signature {
                name: name.into(),
                found,
                known: signatures.join("` or `"),
            });
        };
        self.macros.extend(feature);
        Ok(())
    }

    fn check_held(&self, holder: &str) -> Result<(), Error> {
        let unknown = self
            .printer
            .held
            .iter()
            .find(|name| !PUBLIC.contains(&name.as_str()) && !self.declared.contains(*name));
        match unknown {
            Some(found) => Err(Error::Private {
                holder: holder.into(),
                found: found.clone(),
            }),
            None => Ok(()),
        }
    }

    fn find_structure(&self, name: &str) -> Result<Struct, Error> {
        self.btf
            .resolve_types_by_name(name)?
            .into_iter()
            .find_map(|btf_type| match btf_type {
                Type::Struct(body) => Some(body),
                _ => None,
            })
            .ok_or_else(|| Error::Missing(format!("struct {name}")))
    }

    fn member_names(&self, body: &Struct) -> Result<BTreeSet<String>, Error> {
        body.members
            .iter()
            .map(|member| Ok(self.btf.resolve_name(member)?))
            .collect()
    }

    fn find_function(&self, name: &str) -> Result<Option<FuncProto>, Error> {
        let function: Option<Func> =
            self.btf
                .resolve_types_by_name(name)?
                .into_iter()
                .find_map(|btf_type| match btf_type {
                    Type::Func(function) => Some(function),
                    _ => None,
                });
        let Some(function) = function else {
            return Ok(None);
        };
        match self.btf.resolve_chained_type(&function)? {
            Type::FuncProto(proto) => Ok(Some(proto)),
            _ => Err(Error::Damaged(format!("function {name} has no prototype"))),
        }
    }
}
