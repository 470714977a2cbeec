/* SPDX-License-Identifier: GPL-2.0-only */
/* System calls on files, from their entry to their return. */
#ifndef IOPRO_CALLS_H
#define IOPRO_CALLS_H

#include "pages.h"

#define HAS_FD 1	/* in its first argument, and only those on disks matter */
#define HAS_TWO 2	/* two of them */
#define AT_POSITION 4	/* of the file, and moves it */
#define TELL_BEGIN 8
#define GIVES_FD 16

#define CALL_KINDS 64	/* of system calls, a power of two */

static const __u8 call_traits[CALL_KINDS] = {
	[CALL_READ] = HAS_FD | AT_POSITION,
	[CALL_PREAD64] = HAS_FD,
	[CALL_READV] = HAS_FD | AT_POSITION,
	[CALL_PREADV] = HAS_FD,
	[CALL_PREADV2] = HAS_FD,
	[CALL_WRITE] = HAS_FD | AT_POSITION | TELL_BEGIN,
	[CALL_PWRITE64] = HAS_FD | TELL_BEGIN,
	[CALL_WRITEV] = HAS_FD | AT_POSITION | TELL_BEGIN,
	[CALL_PWRITEV] = HAS_FD | TELL_BEGIN,
	[CALL_PWRITEV2] = HAS_FD | TELL_BEGIN,
	[CALL_FSYNC] = HAS_FD | TELL_BEGIN,
	[CALL_FDATASYNC] = HAS_FD | TELL_BEGIN,
	[CALL_SYNC_FILE_RANGE] = HAS_FD | TELL_BEGIN,
	[CALL_SYNC] = TELL_BEGIN,
	[CALL_SYNCFS] = HAS_FD | TELL_BEGIN,
	[CALL_MSYNC] = TELL_BEGIN,
	[CALL_TRUNCATE] = TELL_BEGIN,
	[CALL_FTRUNCATE] = HAS_FD | TELL_BEGIN,
	[CALL_FALLOCATE] = HAS_FD | TELL_BEGIN,
	[CALL_OPEN] = GIVES_FD,
	[CALL_OPENAT] = GIVES_FD,
	[CALL_OPENAT2] = GIVES_FD,
	[CALL_CREAT] = GIVES_FD,
	[CALL_SENDFILE] = HAS_TWO | TELL_BEGIN,
	[CALL_COPY_FILE_RANGE] = HAS_TWO | TELL_BEGIN,
	[CALL_SPLICE] = HAS_TWO | TELL_BEGIN,
	[CALL_GETDENTS64] = HAS_FD,
	[CALL_FADVISE64] = HAS_FD,
	[CALL_READAHEAD] = HAS_FD,
};


static __always_inline struct file *file_of(int fd)
{
	struct fdtable *table = GET(CURRENT(), files, fdt);
	struct file *file = NULL, **place;

	if (fd < 0 || !table || (__u32)fd >= GET(table, max_fds))
		return NULL;
	place = GET(table, fd) + fd;
	if (CAN_TYPE)
		return (void *)TYPED(place, struct list_head)->next;
	bpf_probe_read_kernel(&file, sizeof(file), place);
	return file;
}

static __always_inline __u16 flags_of(unsigned int flags)
{
	return (flags & O_DIRECT ? FLAG_DIRECT : 0) | (flags & O_DSYNC ? FLAG_SYNC : 0) |
	       (flags & O_APPEND ? FLAG_APPEND : 0);
}

/* The part of a struct file with both of them in it. */
struct file_part {
	__u8 bytes[40];
};

/* One read of the kernel's memory instead of two: each costs as much as a lookup. */
static __always_inline void read_file(struct file *file, __u64 *inode, unsigned int *flags)
{
	__u32 inode_at = bpf_core_field_offset(struct file, f_inode);
	__u32 flags_at = bpf_core_field_offset(struct file, f_flags);
	struct file_part part;

	if (CAN_TYPE) {
		file = TYPED(file, struct file);
		*inode = (unsigned long)file->f_inode;
		*flags = file->f_flags;
		return;
	}
	/* The flags follow the inode in all kernels so far. */
	if (flags_at < inode_at || flags_at - inode_at > sizeof(part) - sizeof(*flags)) {
		*inode = (unsigned long)BPF_CORE_READ(file, f_inode);
		*flags = BPF_CORE_READ(file, f_flags);
		return;
	}
	bpf_probe_read_kernel(&part, flags_at - inode_at + sizeof(*flags),
			      (void *)file + inode_at);
	*inode = *(__u64 *)part.bytes;
	*flags = *(unsigned int *)&part.bytes[flags_at - inode_at];
}

static __always_inline bool set_file(struct thread *thread, int fd, bool position)
{
	struct file *file = file_of(fd);
	unsigned int flags;

	if (!file)
		return false;
	read_file(file, &thread->call_inode, &flags);
	/* From there it is a number, and no pointer with a type any more. */
	barrier();
	if (!identify_again(thread, thread->call_inode, &thread->call_file)) {
		thread->call_inode = 0;
		return false;
	}
	thread->call_fd = fd;
	thread->call_flags = flags_of(flags);
	thread->call_has = CALL_HAS_FILE;
	if (position) {
		thread->call_offset = BPF_CORE_READ(file, f_pos);
		thread->call_has |= CALL_HAS_OFFSET;
	}
	return true;
}

/* Of two files either may be a pipe or a socket, but not both. */
static __always_inline bool set_two_files(struct thread *thread, int to, int from)
{
	struct file *file = file_of(from);
	bool target = set_file(thread, to, false);
	bool source = false;

	if (file)
		source = identify((unsigned long)BPF_CORE_READ(file, f_inode),
				  &thread->call_from);
	if (!source && !target)
		return false;
	thread->call_fd = to;
	thread->call_two = source;
	if (!source || !target)
		thread->call_flags |= FLAG_HALF;
	return true;
}

static __always_inline void set_size(struct thread *thread, __u64 bytes)
{
	thread->call_size = bytes;
	thread->call_has |= CALL_HAS_SIZE;
}

static __always_inline void set_offset(struct thread *thread, __u64 bytes)
{
	thread->call_offset = bytes;
	thread->call_has |= CALL_HAS_OFFSET;
}

static __always_inline void set_range(struct thread *thread, struct pt_regs *regs, __u8 kind)
{
	switch (kind) {
	case CALL_READ:
	case CALL_WRITE:
	case CALL_GETDENTS64:
		set_size(thread, CALL_ARG3(regs));
		break;
	case CALL_PREAD64:
	case CALL_PWRITE64:
		set_size(thread, CALL_ARG3(regs));
		set_offset(thread, CALL_ARG4(regs));
		break;
	case CALL_PREADV2:
	case CALL_PWRITEV2:
		if (CALL_ARG6(regs) & (RWF_DSYNC | RWF_SYNC))
			thread->call_flags |= FLAG_SYNC;
		/* At the file's position. */
		if (CALL_ARG4(regs) == (unsigned long)-1)
			break;
		set_offset(thread, CALL_ARG4(regs));
		break;
	case CALL_PREADV:
	case CALL_PWRITEV:
		set_offset(thread, CALL_ARG4(regs));
		break;
	case CALL_SYNC_FILE_RANGE:
	case CALL_FADVISE64:
	case CALL_READAHEAD:
		set_offset(thread, CALL_ARG2(regs));
		set_size(thread, CALL_ARG3(regs));
		break;
	case CALL_TRUNCATE:
	case CALL_FTRUNCATE:
		set_offset(thread, CALL_ARG2(regs));
		break;
	case CALL_FALLOCATE:
		set_offset(thread, CALL_ARG3(regs));
		set_size(thread, CALL_ARG4(regs));
		break;
	case CALL_MSYNC:
		set_size(thread, CALL_ARG2(regs));
		break;
	case CALL_SENDFILE:
		set_size(thread, CALL_ARG4(regs));
		break;
	case CALL_COPY_FILE_RANGE:
	case CALL_SPLICE:
		set_size(thread, CALL_ARG5(regs));
		break;
	}
}

static __always_inline void fill_call(struct rec_call *rec, struct thread *thread, __u64 now,
				      __u8 kind, __s64 result)
{
	begin_record(&rec->rec, now, kind);
	rec->rec.op = thread->call;
	rec->rec.flags = thread->call_flags;
	rec->begin_ns = thread->call_begin_ns;
	rec->result = result;
	rec->offset_bytes = thread->call_offset;
	rec->size_bytes = thread->call_size;
	rec->file = thread->call_file;
	rec->fd = thread->call_fd;
	rec->has = thread->call_has;
}

static __always_inline bool set_call(struct thread *thread, struct pt_regs *regs, __u8 kind)
{
	__u8 traits = call_traits[kind & (CALL_KINDS - 1)];
	bool ok = true;

	thread->call_fd = -1;
	thread->call_has = 0;
	thread->call_flags = 0;
	thread->call_two = 0;
	thread->call_inode = 0;
	if (traits & HAS_FD)
		ok = set_file(thread, CALL_ARG1(regs), traits & AT_POSITION);
	else if (kind == CALL_SENDFILE)
		ok = set_two_files(thread, CALL_ARG1(regs), CALL_ARG2(regs));
	else if (traits & HAS_TWO)
		ok = set_two_files(thread, CALL_ARG3(regs), CALL_ARG1(regs));
	if (ok)
		set_range(thread, regs, kind);
	return ok;
}

TRACEPOINT(sys_enter)
int PROGRAM(call_begins, struct pt_regs *regs, long number)
{
	struct thread *thread;
	struct rec_call *rec;
	__u8 kind;

	if (number < 0 || number >= MAX_CALLS)
		return 0;
	kind = settings.call_kinds[number & (MAX_CALLS - 1)];
	if (!kind)
		return 0;
#if defined(__TARGET_ARCH_x86)
	/* TS_COMPAT: a program of 32 bits, whose calls have other numbers. */
	if (GET(CURRENT(), thread_info.status) & 2)
		return 0;
#endif
	thread = this_thread();
	if (!thread)
		return 0;
	thread->call = 0;
	thread->waits = 0;
	thread->fault = 0;
	thread->call_added = false;
	if (!set_call(thread, regs, kind))
		return 0;
	if (thread->css_set != (unsigned long)GET(CURRENT(), cgroups)) {
		thread->css_set = (unsigned long)GET(CURRENT(), cgroups);
		thread->cgroup = bpf_get_current_cgroup_id();
		tell_thread(bpf_get_current_task(), thread->cgroup);
	}
	thread->call = kind;
	thread->call_begin_ns = bpf_ktime_get_ns();
	if (!(call_traits[kind & (CALL_KINDS - 1)] & TELL_BEGIN))
		return 0;
	rec = reserve(sizeof(*rec), LOST_CALLS);
	if (!rec)
		return 0;
	fill_call(rec, thread, thread->call_begin_ns, REC_CALL_ENTER, 0);
	SUBMIT(rec);
	return 0;
}

/* Whether there is anything to tell of a call that opens files. */
static __always_inline bool opened(struct thread *thread, long result)
{
	return result >= 0 && set_file(thread, result, false);
}

/* What is appended past the page cache is nowhere seen by buffered_write(). */
static __always_inline void place_appended(struct thread *thread, long bytes)
{
	struct inode *inode = (void *)thread->call_inode;
	__u16 flags = FLAG_APPEND | FLAG_DIRECT;

	if ((thread->call_flags & flags) == flags)
		set_offset(thread, BPF_CORE_READ(inode, i_size) - bytes);
}

TRACEPOINT(sys_exit)
int PROGRAM(call_ends, struct pt_regs *regs, long result)
{
	long number = CALL_NUMBER(regs);
	struct thread *thread;
	__u64 now;
	__u8 kind;

	if (number < 0 || number >= MAX_CALLS || !settings.call_kinds[number & (MAX_CALLS - 1)])
		return 0;
	thread = known_thread(this_tid());
	if (!thread || !thread->call)
		return 0;
	kind = thread->call;
	flush_run(thread);
	if ((call_traits[kind & (CALL_KINDS - 1)] & GIVES_FD) && !opened(thread, result)) {
		thread->call = 0;
		return 0;
	}
	if (result > 0 && (call_traits[kind & (CALL_KINDS - 1)] & TELL_BEGIN))
		place_appended(thread, result);
	now = bpf_ktime_get_ns();
	if (thread->call_two) {
		struct rec_call_from *rec = reserve(sizeof(*rec), LOST_CALLS);

		if (rec) {
			fill_call(&rec->call, thread, now, REC_CALL_EXIT_FROM, result);
			rec->from = thread->call_from;
			SUBMIT(rec);
		}
	} else {
		struct rec_call *rec = reserve(sizeof(*rec), LOST_CALLS);

		if (rec) {
			fill_call(rec, thread, now, REC_CALL_EXIT, result);
			SUBMIT(rec);
		}
	}
	thread->call = 0;
	return 0;
}

/* The offset of a write is known only with the inode's lock held, with O_APPEND above all. */
static __always_inline int write_begins(struct kiocb *iocb)
{
	struct thread *thread = known_thread(this_tid());

	if (!thread || !thread->call || (unsigned long)iocb->ki_filp->f_inode != thread->call_inode)
		return 0;
	set_offset(thread, iocb->ki_pos);
	return 0;
}

SEC("fentry/generic_perform_write")
int PROGRAM(buffered_write, struct kiocb *iocb)
{
	return write_begins(iocb);
}

SEC("fentry/iomap_file_buffered_write")
int PROGRAM(iomap_write, struct kiocb *iocb)
{
	return write_begins(iocb);
}

/* The calls that have a path and no descriptor: which file it is. */
static __always_inline void set_path_file(__u64 inode, const struct file_key *file)
{
	struct thread *thread = known_thread(this_tid());

	if (!thread || !thread->call || thread->call_has & CALL_HAS_FILE)
		return;
	thread->call_file = *file;
	thread->call_inode = inode;
	thread->call_has |= CALL_HAS_FILE;
}

SEC("fentry/do_truncate")
int PROGRAM(truncate_begins, void *idmap, struct dentry *dentry)
{
	__u64 inode = (unsigned long)BPF_CORE_READ(dentry, d_inode);
	struct file_key file = {};

	if (identify(inode, &file))
		set_path_file(inode, &file);
	return 0;
}

static __always_inline int tell_change(__u64 dentry, __u8 why)
{
	__u64 inode = (unsigned long)BPF_CORE_READ((struct dentry *)dentry, d_inode);
	struct file_key file = {};

	if (!identify(inode, &file))
		return 0;
	set_path_file(inode, &file);
	return tell_name(inode, dentry, &file, why);
}

SEC("fentry/vfs_unlink")
int PROGRAM(unlink_begins, void *idmap, struct inode *dir, struct dentry *dentry)
{
	tell_change(raw_argument(ctx, 2), NAME_REMOVED);
	return 0;
}

SEC("fexit/vfs_rename")
int PROGRAM(rename_ends, struct renamedata *data, int error)
{
	if (error)
		return 0;
	/* By now it has its new name. */
	tell_change((unsigned long)BPF_CORE_READ(data, old_dentry), NAME_RENAMED);
	if (data->flags & RENAME_EXCHANGE)
		tell_change((unsigned long)BPF_CORE_READ(data, new_dentry), NAME_RENAMED);
	return 0;
}

TRACEPOINT(sched_process_exit)
int PROGRAM(thread_ends, struct task_struct *task)
{
	struct thread *thread = known_thread(GET(task, pid));
	struct rec *rec;

	if (!thread)
		return 0;
	flush_run(thread);
	rec = reserve(sizeof(*rec), LOST_NAMES);
	if (rec) {
		begin_record(rec, bpf_ktime_get_ns(), REC_THREAD_END);
		SUBMIT(rec);
	}
	forget_thread(thread);
	return 0;
}

/* What it did after it had ended, such as closing its files, took a place again. */
TRACEPOINT(sched_process_free)
int PROGRAM(thread_freed, struct task_struct *task)
{
	struct thread *thread = known_thread(GET(task, pid));

	if (thread)
		forget_thread(thread);
	return 0;
}

TRACEPOINT(sched_process_exec)
int PROGRAM(program_begins, struct task_struct *task)
{
	struct thread *thread = known_thread(GET(task, pid));

	if (thread)
		tell_thread(raw_argument(ctx, 0), thread->cgroup);
	return 0;
}

SEC("fexit/__set_task_comm")
int PROGRAM(thread_named, struct task_struct *task)
{
	struct thread *thread = known_thread(GET(task, pid));

	if (thread)
		tell_thread(raw_argument(ctx, 0), thread->cgroup);
	return 0;
}

TRACEPOINT(cgroup_mkdir)
int PROGRAM(cgroup_made, struct cgroup *cgroup, const char *path)
{
	struct path_buffer *buffer;
	struct cpu *cpu = this_cpu();
	struct rec_cgroup *rec;
	__u32 level;
	long length;

	if (!cpu)
		return 0;
	level = __sync_fetch_and_add(&cpu->nesting, 1);
	buffer = bpf_map_lookup_elem(&paths, &level);
	if (buffer) {
		length = bpf_probe_read_kernel_str(buffer->path, PATH_BYTES - 1, path);
		length &= PATH_BYTES - 1;
		rec = reserve(sizeof(*rec) + length, LOST_NAMES);
		if (rec) {
			begin_record(&rec->rec, bpf_ktime_get_ns(), REC_CGROUP);
			rec->id = GET(cgroup, kn, id);
			rec->length = length ? length - 1 : 0;
			rec->reserved = 0;
			bpf_probe_read_kernel(rec + 1, length, buffer->path);
			submit(rec, sizeof(*rec) + length);
		}
	}
	__sync_fetch_and_add(&cpu->nesting, -1);
	return 0;
}

#endif
