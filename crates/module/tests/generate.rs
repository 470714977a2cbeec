//! The header for kernels of each known shape, and the refusal of unknown ones.

use crate::kernel::Kernel;
use module::abi::Exports;
use std::collections::BTreeSet;
use std::fs;

/// What a block layer declares, as text that a test can change.
struct BlockLayer {
    structures: Vec<(String, Vec<(String, String)>)>,
    functions: Vec<(String, String)>,
    queue_flags: Vec<&'static str>,
}

impl BlockLayer {
    /// As in 6.1.
    fn oldest() -> Self {
        Self {
            structures: vec![
                structure(
                    "blk_mq_alloc_data",
                    "q: struct request_queue *; shallow_depth: unsigned int; cmd_flags: blk_opf_t; hctx: struct blk_mq_hw_ctx *",
                ),
                structure("elevator_mq_ops", OPERATIONS),
                structure(
                    "elv_fs_entry",
                    "attr: struct attribute; show: ssize_t (struct elevator_queue *, char *); store: ssize_t (struct elevator_queue *, const char *, size_t)",
                ),
                structure(
                    "elevator_type",
                    "ops: struct elevator_mq_ops; elevator_attrs: struct elv_fs_entry *; elevator_name: const char *; elevator_owner: struct module *; icq_cache_name: char[22]; list: struct list_head",
                ),
                structure(
                    "elevator_queue",
                    "type: struct elevator_type *; elevator_data: void *; kobj: struct kobject; hash: struct hlist_head[64]",
                ),
                structure("request", "tag: int; ioprio: unsigned short"),
                structure("request_queue", "nr_requests: unsigned long"),
                structure(
                    "blkcg_gq",
                    "q: struct request_queue *; blkcg: struct blkcg *",
                ),
                structure("blkcg", "css: struct cgroup_subsys_state *"),
            ],
            functions: parse(FUNCTIONS),
            queue_flags: vec!["QUEUE_FLAG_STOPPED"],
        }
    }

    /// As in 6.12.
    fn flagged() -> Self {
        let mut layer = Self::oldest();
        layer.operation(
            "insert_requests",
            "void (struct blk_mq_hw_ctx *, struct list_head *, blk_insert_t)",
        );
        layer.member("elevator_queue", "flags", "unsigned long");
        layer.member("request_queue", "limits_lock", "struct mutex");
        layer.structures.retain(|(name, _)| name != "request");
        layer.structures.push(structure("request", "tag: int"));
        for name in ["wbt_disable_default", "wbt_enable_default"] {
            layer.set_function(name, "void (struct gendisk *)");
        }
        layer
    }

    /// As in 7.0.
    fn newest() -> Self {
        let mut layer = Self::flagged();
        layer.operation(
            "init_sched",
            "int (struct request_queue *, struct elevator_queue *)",
        );
        layer.operation("depth_updated", "void (struct request_queue *)");
        layer.operation("alloc_sched_data", "void *(struct request_queue *)");
        layer.member("elevator_queue", "et", "struct elevator_tags *");
        layer.member("request_queue", "async_depth", "unsigned int");
        layer.set_function(
            "elevator_alloc",
            "struct elevator_queue *(struct request_queue *, struct elevator_type *, struct elevator_resources *)",
        );
        layer.queue_flags.push("QUEUE_FLAG_DISABLE_WBT_DEF");
        layer.set_function("hrtimer_setup", "void (struct hrtimer *)");
        layer
    }

    fn operation(&mut self, name: &str, signature: &str) {
        self.member("elevator_mq_ops", name, signature);
    }

    fn member(&mut self, structure: &str, name: &str, text: &str) {
        let (_, members) = self
            .structures
            .iter_mut()
            .find(|(candidate, _)| candidate == structure)
            .unwrap();
        set(members, name, text);
    }

    fn set_function(&mut self, name: &str, signature: &str) {
        set(&mut self.functions, name, signature);
    }

    fn btf(&self) -> Vec<u8> {
        let mut kernel = Kernel::new();
        kernel.enumeration(
            "elv_merge",
            &[("ELEVATOR_NO_MERGE", 0), ("ELEVATOR_FRONT_MERGE", 1)],
        );
        let flags: Vec<_> = self.queue_flags.iter().copied().zip(0..).collect();
        kernel.enumeration("", &flags);
        for (name, members) in &self.structures {
            kernel.structure(name, members);
        }
        for (name, signature) in &self.functions {
            kernel.function(name, signature);
        }
        kernel.btf()
    }

    fn header(&self) -> String {
        module::abi::generate(&self.btf(), None).unwrap()
    }

    fn refusal(&self) -> String {
        module::abi::generate(&self.btf(), None)
            .unwrap_err()
            .to_string()
    }
}

const OPERATIONS: &str = "init_sched: int (struct request_queue *, struct elevator_type *); \
    exit_sched: void (struct elevator_queue *); \
    init_hctx: int (struct blk_mq_hw_ctx *, unsigned int); \
    exit_hctx: void (struct blk_mq_hw_ctx *, unsigned int); \
    depth_updated: void (struct blk_mq_hw_ctx *); \
    allow_merge: bool (struct request_queue *, struct request *, struct bio *); \
    bio_merge: bool (struct request_queue *, struct bio *, unsigned int); \
    request_merge: int (struct request_queue *, struct request **, struct bio *); \
    request_merged: void (struct request_queue *, struct request *, enum elv_merge); \
    requests_merged: void (struct request_queue *, struct request *, struct request *); \
    limit_depth: void (blk_opf_t, struct blk_mq_alloc_data *); \
    prepare_request: void (struct request *); \
    finish_request: void (struct request *); \
    insert_requests: void (struct blk_mq_hw_ctx *, struct list_head *, bool); \
    dispatch_request: struct request *(struct blk_mq_hw_ctx *); \
    has_work: bool (struct blk_mq_hw_ctx *); \
    completed_request: void (struct request *, u64); \
    requeue_request: void (struct request *); \
    former_request: struct request *(struct request_queue *, struct request *); \
    next_request: struct request *(struct request_queue *, struct request *)";

const FUNCTIONS: &str = "elv_register: int (struct elevator_type *); \
    elv_unregister: void (struct elevator_type *); \
    bio_blkcg_css: struct cgroup_subsys_state *(struct bio *); \
    blk_mq_run_hw_queues: void (struct request_queue *, bool); \
    __tracepoint_block_rq_insert: void (void); \
    register_tracepoint_module_notifier: int (struct notifier_block *); \
    elv_rqhash_add: void (struct request_queue *, struct request *); \
    elv_rqhash_del: void (struct request_queue *, struct request *); \
    elevator_alloc: struct elevator_queue *(struct request_queue *, struct elevator_type *); \
    blk_mq_sched_try_merge: bool (struct request_queue *, struct bio *, unsigned int, struct request **); \
    blk_mq_sched_try_insert_merge: bool (struct request_queue *, struct request *, struct list_head *); \
    blk_mq_sched_mark_restart_hctx: void (struct blk_mq_hw_ctx *); \
    wbt_disable_default: void (struct request_queue *); \
    wbt_enable_default: void (struct request_queue *)";

fn parse(text: &str) -> Vec<(String, String)> {
    text.split(';')
        .map(|item| item.split_once(':').unwrap())
        .map(|(name, text)| (name.trim().to_owned(), text.trim().to_owned()))
        .collect()
}

fn structure(name: &str, members: &str) -> (String, Vec<(String, String)>) {
    (name.to_owned(), parse(members))
}

fn set(list: &mut Vec<(String, String)>, name: &str, text: &str) {
    list.retain(|(candidate, _)| candidate != name);
    list.push((name.to_owned(), text.to_owned()));
}

fn macros(header: &str) -> Vec<&str> {
    header
        .lines()
        .filter_map(|line| line.strip_prefix("#define FRONTROW_ABI_"))
        .filter_map(|line| line.strip_suffix(" 1"))
        .collect()
}

#[test]
fn each_known_block_layer_gets_its_macros() {
    assert_eq!(
        macros(&BlockLayer::oldest().header()),
        ["HAS_WBT", "REQUEST_IOPRIO"]
    );
    assert_eq!(
        macros(&BlockLayer::flagged().header()),
        [
            "ELEVATOR_FLAGS",
            "HAS_WBT",
            "INSERT_BLK_FLAGS",
            "LIMITS_LOCK",
            "WBT_GENDISK"
        ]
    );
    assert_eq!(
        macros(&BlockLayer::newest().header()),
        [
            "ASYNC_DEPTH",
            "DEPTH_UPDATED_QUEUE",
            "HAS_HRTIMER_SETUP",
            "HAS_WBT",
            "INIT_SCHED_EQ",
            "INSERT_BLK_FLAGS",
            "LIMITS_LOCK",
            "QUEUE_FLAG_DISABLE_WBT",
            "WBT_GENDISK"
        ]
    );
}

#[test]
fn flags_come_only_with_the_kernels_that_know_them() {
    let oldest = BlockLayer::oldest().header();
    assert!(!oldest.contains("BLK_MQ_INSERT_AT_HEAD"));
    assert!(!oldest.contains("ELEVATOR_FLAG_DISABLE_WBT"));
    let flagged = BlockLayer::flagged().header();
    assert!(flagged.contains("#define BLK_MQ_INSERT_AT_HEAD"));
    assert!(flagged.contains("#define ELEVATOR_FLAG_DISABLE_WBT 1"));
    // The same bit means something else there.
    assert!(!BlockLayer::newest().header().contains("ELEVATOR_FLAG_"));
}

#[test]
fn only_private_types_are_declared_and_their_layout_is_checked() {
    let header = BlockLayer::oldest().header();
    for line in [
        "struct request_queue;",
        "\tconst char *elevator_name;",
        "\tchar icq_cache_name[22];",
        "\tstruct request *(*dispatch_request)(struct blk_mq_hw_ctx *);",
        "\tint (*request_merge)(struct request_queue *, struct request **, struct bio *);",
        "static_assert(sizeof(struct elevator_mq_ops) == 160);",
        "static_assert(offsetof(struct elevator_queue, kobj) == 16);",
        "struct elevator_queue *elevator_alloc(struct request_queue *, struct elevator_type *);",
    ] {
        assert!(header.lines().any(|it| it == line), "{line} in {header}");
    }
    for public in [
        "struct request_queue {",
        "struct kobject {",
        "struct list_head {",
    ] {
        assert!(!header.contains(public), "{public}");
    }
}

#[test]
fn a_kernel_without_writeback_throttling_is_supported() {
    let mut layer = BlockLayer::oldest();
    layer
        .functions
        .retain(|(name, _)| !name.starts_with("wbt_"));
    assert_eq!(macros(&layer.header()), ["REQUEST_IOPRIO"]);
}

#[test]
fn an_unknown_signature_is_refused_by_name() {
    let mut layer = BlockLayer::oldest();
    layer.operation(
        "dispatch_request",
        "struct request *(struct request_queue *)",
    );
    let refusal = layer.refusal();
    assert!(
        refusal.contains("elevator_mq_ops.dispatch_request"),
        "{refusal}"
    );
    assert!(
        refusal.contains("`struct request *(struct request_queue *)`"),
        "{refusal}"
    );

    let mut layer = BlockLayer::oldest();
    layer.set_function(
        "elv_rqhash_add",
        "void (struct request_queue *, struct bio *)",
    );
    assert!(layer.refusal().contains("elv_rqhash_add"));
}

#[test]
fn what_the_scheduler_needs_must_be_there() {
    let mut layer = BlockLayer::oldest();
    layer.functions.retain(|(name, _)| name != "elv_register");
    assert!(layer.refusal().contains("no function elv_register"));

    let mut layer = BlockLayer::oldest();
    layer.structures.retain(|(name, _)| name != "elv_fs_entry");
    assert!(layer.refusal().contains("no struct elv_fs_entry"));

    let mut layer = BlockLayer::oldest();
    let (_, operations) = &mut layer.structures[1];
    operations.retain(|(name, _)| name != "has_work");
    assert!(
        layer
            .refusal()
            .contains("no struct elevator_mq_ops.has_work")
    );

    let mut layer = BlockLayer::oldest();
    let (_, members) = &mut layer.structures[0];
    members.retain(|(name, _)| name != "shallow_depth");
    assert!(
        layer
            .refusal()
            .contains("no struct blk_mq_alloc_data.shallow_depth")
    );
}

fn exports_without(missing: &str) -> Exports {
    let symvers: String = parse(FUNCTIONS)
        .iter()
        .filter(|(name, _)| !name.starts_with(missing))
        .map(|(name, _)| format!("0x00000000\t{name}\tvmlinux\tEXPORT_SYMBOL_GPL\t\n"))
        .collect();
    Exports::parse(&symvers)
}

#[test]
fn what_modules_may_not_call_is_not_called() {
    let btf = BlockLayer::oldest().btf();
    let header = |exports: &Exports| module::abi::generate(&btf, Some(exports));
    let all = header(&exports_without("nothing")).unwrap();
    assert_eq!(macros(&all), ["HAS_WBT", "REQUEST_IOPRIO"]);
    let refusal = header(&exports_without("elevator_alloc")).unwrap_err();
    assert!(
        refusal
            .to_string()
            .contains("does not export the function elevator_alloc"),
        "{refusal}"
    );
    let without_wbt = header(&exports_without("wbt_")).unwrap();
    assert_eq!(macros(&without_wbt), ["REQUEST_IOPRIO"]);
    let without_queues = header(&exports_without("blk_mq_run_hw_queues")).unwrap();
    assert!(macros(&without_queues).contains(&"NO_RUN_HW_QUEUES"));
    let without_cgroup = header(&exports_without("bio_blkcg_css")).unwrap();
    assert!(macros(&without_cgroup).contains(&"NO_BIO_BLKCG_CSS"));
    for line in [
        "#define FRONTROW_ABI_OFFSET_BLKCG_GQ_BLKCG 8",
        "#define FRONTROW_ABI_OFFSET_BLKCG_CSS 0",
    ] {
        assert!(without_cgroup.lines().any(|it| it == line), "{line}");
    }
}

/// A signature that the module does not implement must not be accepted: what the header
/// says of a kernel is asked for somewhere in the module.
#[test]
fn the_module_implements_all_that_the_header_may_tell() {
    let generator = include_str!("../src/abi/block.rs");
    let told: BTreeSet<_> = generator
        .split('"')
        .filter(|text| text.starts_with("FRONTROW_ABI_") && !text.contains(' '))
        .collect();
    assert!(told.len() > 5, "{told:?}");
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel/iosched");
    let mut sources = String::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "c" || it == "h") {
            sources += &fs::read_to_string(path).unwrap();
        }
    }
    for name in told {
        let asked = format!("#ifdef {name}\n");
        assert!(sources.contains(&asked), "the module ignores {name}");
    }
}

#[test]
fn a_type_that_may_be_private_is_not_guessed() {
    let mut layer = BlockLayer::oldest();
    layer.member("elevator_queue", "secret", "struct elevator_secret");
    let refusal = layer.refusal();
    assert!(
        refusal.contains("struct elevator_queue contains `struct elevator_secret`"),
        "{refusal}"
    );

    let mut layer = BlockLayer::oldest();
    layer.member("elevator_queue", "", "struct kobject");
    assert!(layer.refusal().contains("nameless member"));
}

#[test]
fn damaged_files_are_errors() {
    for (file, reason) in [
        (&b""[..], "holds no BTF"),
        (b"\x7fELF", "ELF header is damaged"),
        (b"MZ not a kernel", "holds no BTF"),
        (b"\x9f\xeb\x01\x00", "cannot be read"),
    ] {
        let error = module::abi::generate(file, None).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    let btf = BlockLayer::oldest().btf();
    assert!(module::abi::generate(&btf[..btf.len() / 2], None).is_err());
}

#[test]
fn no_damage_makes_it_panic() {
    let btf = BlockLayer::oldest().btf();
    for at in 0..btf.len() {
        for flip in [0x01, 0xff] {
            let mut damaged = btf.clone();
            damaged[at] ^= flip;
            // An error or a header for another layout: both are fine.
            let _ = module::abi::generate(&damaged, None);
        }
    }
}
