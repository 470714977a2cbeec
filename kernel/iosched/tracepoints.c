// SPDX-License-Identifier: GPL-2.0
/*
 * Detection of waits by tracepoints, on a kernel without return probes.
 *
 * folio_wait_writeback		D_data, D_sync; jbd2 in ordered mode
 * ext4_sync_file_enter and _exit,
 * f2fs_sync_file_enter and _exit	a task is inside fsync
 *
 * No tracepoint reports the end of a wait for a folio, so each dispatch looks
 * whether it is still under writeback. None reports waits for metadata buffers
 * or discards, so asynchronous metadata is urgent as soon as it is inserted
 * (queue.c), and discards are not.
 *
 * A waiter lives in a slot. That of an fsync is given back by its task, that of
 * a folio, with the reference to it, when the wait ends.
 */
#include <linux/bitmap.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/tracepoint.h>

#include "frontrow.h"

#ifndef FRONTROW_ABI_NO_TRACEPOINT_NOTIFIER

/* Most tasks that can wait at once; others count as missed. */
#define NR_SLOTS	512

static struct frontrow_waiter slots[NR_SLOTS];
static DECLARE_BITMAP(used, NR_SLOTS);
static atomic_t nr_missed = ATOMIC_INIT(0);

enum { FOLIO_WAIT, FSYNC_ENTER, FSYNC_EXIT, F2FS_ENTER, F2FS_EXIT, NR_POINTS };

static DEFINE_PER_CPU(unsigned long [NR_POINTS], hits);

static struct frontrow_waiter *take_slot(void)
{
	unsigned int nr;

	do {
		nr = find_first_zero_bit(used, NR_SLOTS);
		if (nr >= NR_SLOTS) {
			atomic_inc(&nr_missed);
			return NULL;
		}
	} while (test_and_set_bit_lock(nr, used));
	return &slots[nr];
}

void frontrow_free_slot(struct frontrow_waiter *waiter)
{
	if (waiter->folio)
		folio_put(waiter->folio);
	WRITE_ONCE(waiter->task, NULL);
	clear_bit_unlock(waiter - slots, used);
}

/*
 * Ends the waits for folios that are written. A slot with this fd is in use, and
 * changes under fd->lock only.
 */
void frontrow_end_written(struct frontrow_data *fd, u64 now_ns)
{
	unsigned int nr;

	lockdep_assert_held(&fd->lock);
	for_each_set_bit(nr, used, NR_SLOTS) {
		struct frontrow_waiter *waiter = &slots[nr];

		if (READ_ONCE(waiter->fd) == fd && waiter->folio &&
		    !folio_test_writeback(waiter->folio))
			frontrow_end_wait(fd, waiter, now_ns);
	}
}

/* The fsync of the current task; only that task adds and removes it. */
static struct frontrow_waiter *fsync_of_current(void)
{
	unsigned int nr;

	for_each_set_bit(nr, used, NR_SLOTS)
		if (READ_ONCE(slots[nr].task) == current && slots[nr].wait.is_fsync)
			return &slots[nr];
	return NULL;
}

static void wait_begins(struct frontrow_waiter wait, struct address_space *mapping)
{
	struct frontrow_waiter *waiter = take_slot();

	if (!waiter) {
		if (wait.folio)
			folio_put(wait.folio);
		return;
	}
	*waiter = wait;
	if (!frontrow_detect_wait(waiter, mapping, true))
		frontrow_free_slot(waiter);
}

static void on_folio_wait(void *data, struct folio *folio, struct address_space *mapping)
{
	this_cpu_inc(hits[FOLIO_WAIT]);
	preempt_disable();
	folio_get(folio);
	wait_begins((struct frontrow_waiter) {
		.first_page = folio->index,
		.last_page = folio->index + folio_nr_pages(folio) - 1,
		.dependency = frontrow_whose_wait(FRONTROW_DATA),
		.folio = folio,
	}, mapping);
	preempt_enable();
}

static void give_back(struct frontrow_waiter *waiter)
{
	frontrow_detect_wait_ended(waiter);
	frontrow_free_slot(waiter);
}

static void fsync_begins(struct address_space *mapping)
{
	struct frontrow_waiter *earlier;

	preempt_disable();
	/* Of nested ones, and after one whose exit was not reported, the last counts. */
	earlier = fsync_of_current();
	if (earlier)
		give_back(earlier);
	wait_begins((struct frontrow_waiter) {
		.last_page = ULONG_MAX,
		.dependency = FRONTROW_DATA,
		.wait.is_fsync = true,
	}, mapping);
	preempt_enable();
}

static void fsync_ends(const struct address_space *mapping)
{
	struct frontrow_waiter *waiter;

	preempt_disable();
	waiter = fsync_of_current();
	if (waiter && waiter->mapping == mapping)
		give_back(waiter);
	preempt_enable();
}

static void on_ext4_enter(void *data, struct file *file, int datasync)
{
	this_cpu_inc(hits[FSYNC_ENTER]);
	fsync_begins(file->f_mapping);
}

static void on_ext4_exit(void *data, struct inode *inode, int err)
{
	this_cpu_inc(hits[FSYNC_EXIT]);
	fsync_ends(inode->i_mapping);
}

static void on_f2fs_enter(void *data, struct inode *inode)
{
	this_cpu_inc(hits[F2FS_ENTER]);
	fsync_begins(inode->i_mapping);
}

static void on_f2fs_exit(void *data, struct inode *inode, int reason, int datasync, int err)
{
	this_cpu_inc(hits[F2FS_EXIT]);
	fsync_ends(inode->i_mapping);
}

/*
 * The kernel exports no name of theirs, so they are looked for in its list, and
 * in those of modules.
 */
static struct point {
	const char *name;
	void *handler;
	struct tracepoint *found;	/* NULL: not registered */
} points[NR_POINTS] = {
	[FOLIO_WAIT]	= { "folio_wait_writeback", on_folio_wait },
	[FSYNC_ENTER]	= { "ext4_sync_file_enter", on_ext4_enter },
	[FSYNC_EXIT]	= { "ext4_sync_file_exit", on_ext4_exit },
	[F2FS_ENTER]	= { "f2fs_sync_file_enter", on_f2fs_enter },
	[F2FS_EXIT]	= { "f2fs_sync_file_exit", on_f2fs_exit },
};

static struct point *point_of(const struct tracepoint *found)
{
	unsigned int i;

	for (i = 0; i < NR_POINTS; i++)
		if (!strcmp(points[i].name, found->name))
			return &points[i];
	return NULL;
}

static void use(struct tracepoint *found, void *unused)
{
	struct point *point = point_of(found);

	if (!point || point->found)
		return;
	if (tracepoint_probe_register(found, point->handler, NULL))
		pr_warn("frontrow: cannot use the tracepoint %s\n", found->name);
	else
		WRITE_ONCE(point->found, found);
}

static void leave(struct point *point)
{
	if (point->found)
		tracepoint_probe_unregister(point->found, point->handler, NULL);
	WRITE_ONCE(point->found, NULL);
}

/*
 * File systems may be loaded after this module and unloaded before it. The
 * kernel calls this under its lock of the list of modules, and at registration
 * for each module that is there.
 */
static int module_changed(struct notifier_block *block, unsigned long event, void *data)
{
	struct module *module = ((struct tp_module *)data)->mod;
	unsigned int i;

	for (i = 0; i < module->num_tracepoints; i++) {
		struct tracepoint *tracepoint =
			tracepoint_ptr_deref(&module->tracepoints_ptrs[i]);
		struct point *point = point_of(tracepoint);

		if (event == MODULE_STATE_COMING)
			use(tracepoint, NULL);
		else if (event == MODULE_STATE_GOING && point && point->found == tracepoint)
			leave(point);
	}
	return NOTIFY_OK;
}

static struct notifier_block module_notifier = {
	.notifier_call = module_changed,
};

static void leave_all(void)
{
	unsigned int i;

	for (i = 0; i < NR_POINTS; i++)
		leave(&points[i]);
	tracepoint_synchronize_unregister();
}

int frontrow_tracepoints_init(void)
{
	int err;

	for_each_kernel_tracepoint(use, NULL);
	if (!points[FOLIO_WAIT].found) {
		pr_err("frontrow: this kernel has neither return probes nor the tracepoint %s\n",
		       points[FOLIO_WAIT].name);
		err = -EOPNOTSUPP;
		goto leave;
	}
	err = register_tracepoint_module_notifier(&module_notifier);
	if (err)
		goto leave;
	return 0;
leave:
	leave_all();
	return err;
}

void frontrow_tracepoints_exit(void)
{
	unregister_tracepoint_module_notifier(&module_notifier);
	leave_all();
}

unsigned int frontrow_tracepoints_missed(void)
{
	return atomic_read(&nr_missed);
}

int frontrow_tracepoints_emit_hits(char *page, int length)
{
	int i, begin = length;

	for (i = 0; i < NR_POINTS; i++)
		if (READ_ONCE(points[i].found))
			length += frontrow_detect_emit(page, length, "tracepoint",
						       points[i].name, &hits[i]);
	return length - begin;
}

#endif /* FRONTROW_ABI_NO_TRACEPOINT_NOTIFIER */
