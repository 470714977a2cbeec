/* SPDX-License-Identifier: GPL-2.0-only */
/* Which file an inode is, and what it is called. */
#ifndef IOPRO_NAMES_H
#define IOPRO_NAMES_H

#include "state.h"

#define PATH_BYTES 4096		/* a power of two, and PATH_MAX */
#define COMPONENT_BYTES 256	/* NAME_MAX and a NUL */
#define MAX_COMPONENTS 1024
#define MAX_NESTING 4		/* a thread, soft and hard interrupts */

/*
 * Files whose name was told. Two that share a place put each other out, and
 * then are told again, which does no harm.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SEEN_FILES);
	__type(key, __u32);
	__type(value, struct file_key);
} seen SEC(".maps");

/* A path being walked. It is none of the stack's, of which 6.1 has 512 bytes for all. */
struct path_buffer {
	struct dentry *dentry;
	__u32 length;
	bool whole;
	struct rec_name rec;
	char path[PATH_BYTES + COMPONENT_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_NESTING);
	__type(key, __u32);
	__type(value, struct path_buffer);
} paths SEC(".maps");

static long walk_path(__u32 index, struct path_buffer **walked)
{
	struct path_buffer *walk = *walked;
	struct dentry *dentry = walk->dentry;
	struct dentry *parent = BPF_CORE_READ(dentry, d_parent);
	const unsigned char *name = BPF_CORE_READ(dentry, d_name.name);
	__u32 at = walk->length;
	long length;

	if (parent == dentry && index) {
		walk->whole = true;
		return 1;
	}
	if (at >= PATH_BYTES)
		return 1;
	length = bpf_probe_read_kernel_str(&walk->path[at & (PATH_BYTES - 1)],
					   COMPONENT_BYTES, name);
	if (length <= 0)
		return 1;
	walk->length = at + length;
	walk->dentry = parent;
	return 0;
}

static __always_inline struct dentry *alias_of(struct inode *inode)
{
	struct hlist_node *node = BPF_CORE_READ(inode, i_dentry.first);

	if (!node)
		return NULL;
	if (bpf_core_field_exists(struct dentry, d_u))
		return (void *)node - bpf_core_field_offset(struct dentry, d_u.d_alias);
	return (void *)node - bpf_core_field_offset(struct dentry___flat, d_alias);
}

static __always_inline int put_name(struct path_buffer *buffer, struct dentry *dentry,
				    const struct file_key *file, __u16 mode, __u8 why)
{
	__u64 length;
	void *rec;

	buffer->dentry = dentry;
	buffer->length = 0;
	buffer->whole = false;
	if (dentry)
		bpf_loop(MAX_COMPONENTS, walk_path, &buffer, 0);
	begin_record(&buffer->rec.rec, bpf_ktime_get_ns(), REC_NAME);
	buffer->rec.rec.op = why;
	buffer->rec.rec.flags = mode;
	buffer->rec.file = *file;
	length = buffer->length & (2 * PATH_BYTES - 1);
	if (length > PATH_BYTES + COMPONENT_BYTES)
		return -1;
	buffer->rec.length = length;
	buffer->rec.has = dentry && !buffer->whole && length ? NAME_CUT : 0;
	length += sizeof(buffer->rec);
	rec = reserve(length, LOST_NAMES);
	if (!rec)
		return -1;
	bpf_probe_read_kernel(rec, length, &buffer->rec);
	submit(rec, length);
	return 0;
}

/* Tells the name of `inode`, which is that of `dentry` if there is one. */
__noinline int tell_name(__u64 address, __u64 dentry, struct file_key *file, __u8 why)
{
	struct inode *inode = (void *)address;
	struct path_buffer *buffer;
	struct cpu *cpu = this_cpu();
	__u32 level;
	int error = -1;

	if (!cpu || !file)
		return -1;
	/* An interrupt may come in the middle and tell a name as well. */
	level = __sync_fetch_and_add(&cpu->nesting, 1);
	buffer = bpf_map_lookup_elem(&paths, &level);
	if (buffer)
		error = put_name(buffer, dentry ? (void *)dentry : alias_of(inode), file,
				 BPF_CORE_READ(inode, i_mode), why);
	__sync_fetch_and_add(&cpu->nesting, -1);
	return error;
}

static __always_inline void see_file(struct inode *inode, struct file_key *file)
{
	__u32 place = (__u32)((file->ino * 0x9e3779b97f4a7c15ull) >> 40);
	struct file_key *told;

	place = (place ^ file->dev) % SEEN_FILES;
	told = bpf_map_lookup_elem(&seen, &place);
	if (!told || (told->ino == file->ino && told->dev == file->dev &&
		      told->gen == file->gen))
		return;
	if (!tell_name((unsigned long)inode, 0, file,
		       BPF_CORE_READ(inode, i_nlink) ? NAME_SEEN : NAME_SEEN_REMOVED))
		*told = *file;
}

/* Inodes that went since the recording began: another may be where one was. */
__u64 evictions;

/*
 * Says which file the inode is and makes sure that its name is known; false if
 * what is done to it does not end at a disk of this machine.
 */
__noinline bool identify(__u64 address, struct file_key *file)
{
	struct inode *inode = (void *)address;
	struct super_block *sb;
	__u16 mode;

	if (!inode || !file)
		return false;
	mode = BPF_CORE_READ(inode, i_mode) & S_IFMT;
	/* The file system's own, such as ext4's buddy bitmaps: never on the disk. */
	if (!mode)
		return false;
	if (mode == S_IFBLK) {
		*file = (struct file_key) { .dev = BPF_CORE_READ(inode, i_rdev) };
		return true;
	}
	sb = BPF_CORE_READ(inode, i_sb);
	if (!(BPF_CORE_READ(sb, s_type, fs_flags) & FS_REQUIRES_DEV) &&
	    BPF_CORE_READ(sb, s_magic) != OVERLAYFS_SUPER_MAGIC)
		return false;
	file->ino = BPF_CORE_READ(inode, i_ino);
	file->dev = BPF_CORE_READ(sb, s_dev);
	file->gen = BPF_CORE_READ(inode, i_generation);
	see_file(inode, file);
	return true;
}

/* The same for an inode that the thread may have looked at just before. */
static __always_inline bool identify_again(struct thread *thread, __u64 inode,
					   struct file_key *file)
{
	__u64 now = evictions;

	if (inode && thread->known_inode == inode && thread->known_evictions == now) {
		*file = thread->known_file;
		return true;
	}
	if (!identify(inode, file))
		return false;
#ifdef WITHOUT_TYPES
	/* Nothing tells of inodes that go. */
	return true;
#endif
	/* An interrupt in between finds nothing, and not one half of each. */
	thread->known_inode = 0;
	barrier();
	thread->known_file = *file;
	thread->known_evictions = now;
	barrier();
	thread->known_inode = inode;
	return true;
}

#endif
