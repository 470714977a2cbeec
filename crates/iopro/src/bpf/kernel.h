/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fields of the kernel's types that the programs read. Where they are is
 * found out when the programs are loaded (CO-RE), so neither order nor what is
 * left out matters.
 */
#ifndef IOPRO_KERNEL_H
#define IOPRO_KERNEL_H

#include <linux/types.h>

typedef _Bool bool;
#define true 1
#define false 0

#ifndef NULL
#define NULL ((void *)0)
#endif

#define barrier() asm volatile("" ::: "memory")

#define SECTOR_SHIFT 9

#define S_IFMT 0170000
#define S_IFBLK 0060000
#define FS_REQUIRES_DEV 1
#define OVERLAYFS_SUPER_MAGIC 0x794c7630

#define PF_KTHREAD 0x00200000
#define TASK_INTERRUPTIBLE 1
#define TASK_UNINTERRUPTIBLE 2

#define O_DSYNC 00010000
#define O_APPEND 00002000
#define RENAME_EXCHANGE 2
#define RWF_DSYNC 2
#define RWF_SYNC 4

#define WB_SYNC_ALL 1
#define LCB_F_SPIN 1
#define LCB_F_PERCPU 16

/* The low bits of page->mapping say that it is not a file's. */
#define PAGE_MAPPING_FLAGS 3

#define MINORBITS 20
#define MKDEV(major, minor) ((__u32)(major) << MINORBITS | (minor))

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long di, si, dx, r10, r8, r9, orig_ax;
};
#define CALL_NUMBER(of) ((long)GET(of, orig_ax))
#define CALL_ARG1(of) GET(of, di)
#define CALL_ARG2(of) GET(of, si)
#define CALL_ARG3(of) GET(of, dx)
#define CALL_ARG4(of) GET(of, r10)
#define CALL_ARG5(of) GET(of, r8)
#define CALL_ARG6(of) GET(of, r9)
#define O_DIRECT 00040000
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	unsigned long regs[31];
	unsigned long orig_x0;
	int syscallno;
};
#define CALL_NUMBER(of) ((long)GET(of, syscallno))
#define CALL_ARG1(of) GET(of, orig_x0)
#define CALL_ARG2(of) GET(of, regs[1])
#define CALL_ARG3(of) GET(of, regs[2])
#define CALL_ARG4(of) GET(of, regs[3])
#define CALL_ARG5(of) GET(of, regs[4])
#define CALL_ARG6(of) GET(of, regs[5])
#define O_DIRECT 00200000
#else
#error "the system call registers of this machine are not known"
#endif

struct list_head {
	struct list_head *next;
};

struct swait_queue_head {
	struct list_head task_list;
};

struct completion {
	struct swait_queue_head wait;
};

struct task_struct;

struct swait_queue {
	struct task_struct *task;
	struct list_head task_list;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct qstr {
	__u32 len;
	const unsigned char *name;
};

struct inode;

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	union {
		struct hlist_node d_alias;
	} d_u;
};

/* Since 7.2 the union has no name. */
struct dentry___flat {
	struct hlist_node d_alias;
};

struct file_system_type {
	int fs_flags;
};

struct super_block {
	__u32 s_dev;
	struct file_system_type *s_type;
	unsigned long s_magic;
};

struct rw_semaphore {
	long count;
};

struct address_space {
	struct inode *host;
	unsigned long nrpages;
	struct rw_semaphore invalidate_lock;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	unsigned int i_nlink;
	__u32 i_rdev;
	long long i_size;
	__u32 i_generation;
	struct rw_semaphore i_rwsem;
	struct hlist_head i_dentry;
};

struct file {
	struct inode *f_inode;
	unsigned int f_flags;
	long long f_pos;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct css_set;

struct thread_info {
	__u32 status;
};

struct task_struct {
	struct thread_info thread_info;
	void *stack;
	unsigned int flags;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	__u64 start_boottime;
	char comm[16];
	struct files_struct *files;
	struct css_set *cgroups;
	unsigned in_iowait:1;
	struct bio_list *bio_list;
};

/* Its other fields are the folio's, and have names of their own in newer kernels. */
struct page {
	unsigned long compound_head;
};

/* Since 7.3; what a tail page has there may be a mask. */
struct page___info {
	unsigned long compound_info;
};

struct folio {
	unsigned long flags;
	struct address_space *mapping;
	unsigned long index;
	struct page page;
};

/* Since 6.18 the flags are in a structure. */
struct folio___structured {
	struct {
		unsigned long f;
	} flags;
};

struct vm_area_struct {
	struct file *vm_file;
};

struct vm_fault {
	struct vm_area_struct *vma;
	unsigned long pgoff;
};

struct kiocb {
	struct file *ki_filp;
	long long ki_pos;
};

struct iov_iter {
	unsigned long count;
};

enum writeback_sync_modes {
	WB_SYNC_MODES_UNUSED,
};

struct writeback_control {
	long nr_to_write;
	enum writeback_sync_modes sync_mode;
};

struct renamedata {
	struct dentry *old_dentry;
	struct dentry *new_dentry;
	unsigned int flags;
};

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct gendisk {
	int major;
	int first_minor;
};

struct request_queue {
	struct gendisk *disk;
};

struct block_device {
	__u32 bd_dev;
	struct gendisk *bd_disk;
};

struct bio_vec {
	struct page *bv_page;
	unsigned int bv_len;
	unsigned int bv_offset;
};

struct bvec_iter {
	__u64 bi_sector;
	unsigned int bi_size;
	unsigned int bi_idx;
	unsigned int bi_bvec_done;
};

/* What bi_bvec_done is called since 7.3. */
struct bvec_iter___offset {
	unsigned int bi_offset;
};

struct bio___offset {
	struct bvec_iter___offset bi_iter;
};

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	__u32 bi_opf;
	unsigned short bi_ioprio;
	struct bvec_iter bi_iter;
	void *bi_private;
	struct bio_vec *bi_io_vec;
};

struct request {
	struct request_queue *q;
	__u32 cmd_flags;
	unsigned int __data_len;
	__u64 __sector;
	struct bio *bio;
};

struct buffer_head {
	unsigned long b_state;
	__u64 b_blocknr;
	unsigned long b_size;
	struct block_device *b_bdev;
};

struct journal_s {
	struct block_device *j_fs_dev;
};

struct transaction_s {
	__u32 t_tid;
};

struct io_rw {
	struct kiocb kiocb;
	__u64 addr;
	__u32 len;
};

struct io_cqe {
	__u64 user_data;
};

struct io_kiocb {
	struct file *file;
	__u8 opcode;
	struct io_cqe cqe;
};

#pragma clang attribute pop

typedef struct journal_s journal_t;
typedef struct transaction_s transaction_t;

/* Only that they are there and what they are called matters. */
enum pageflags {
	PG_locked = 0,
	PG_writeback = 1,
	PG_swapbacked = 2,
};

enum jbd_state_bits {
	BH_Shadow = 23,
};

enum req_flag_bits {
	__REQ_SYNC,
	__REQ_META,
	__REQ_PRIO,
	__REQ_IDLE,
	__REQ_FUA,
	__REQ_PREFLUSH,
	__REQ_RAHEAD,
	__REQ_BACKGROUND,
	__REQ_SWAP,
};

#endif
