// SPDX-License-Identifier: GPL-2.0
/*
 * Detection of waits by return probes.
 *
 * They are on functions that a task enters only to sleep:
 *
 * folio_wait_bit(PG_writeback)	D_data, D_sync; jbd2 in ordered mode
 * __lock_buffer			D_meta (entered if the trylock failed)
 * __wait_on_buffer		jbd2 and readers of metadata
 * __sync_dirty_buffer,
 * write_dirty_buffer		the same where it is inlined there:
 *				file systems without a journal
 * ext4_should_retry_alloc	D_discard: an allocation without space
 *				waits for discards
 * vfs_fsync_range		not a wait itself, but a task waits while it
 *				runs, also while the commit waits for a
 *				journal handle (I_jhandle) and there is no
 *				request
 * do_fsync, vfs_fsync		the same where it is inlined there; of
 *				nested ones the outermost counts
 *
 * The probes report the start of a wait, when promotion helps, and its end, for
 * the time it took and the end of promotions. The waiter lives in the probe's
 * instance. Handlers run in the waiting task with preemption off.
 */
#include <linux/buffer_head.h>
#include <linux/file.h>
#include <linux/kprobes.h>
#include <linux/pagemap.h>

#include "frontrow.h"

/* Most tasks that one hook can track at once; others count as missed. */
#define MAX_SLEEPERS	512

struct discard_wait {
	struct frontrow_data *fd;	/* may be freed: compare id */
	u64 id;
	u64 begin_ns;
};

/*
 * A probe's instance, to be filled in. An oops in the probed function ends its task, and
 * nobody reports the end of the wait: it ends before the instance has another's.
 */
static struct frontrow_waiter *waiter_in(struct kretprobe_instance *ri)
{
	struct frontrow_waiter *waiter = (struct frontrow_waiter *)ri->data;

	if (waiter->is_above || READ_ONCE(waiter->fd))
		frontrow_detect_wait_ended(waiter);
	return waiter;
}

/*
 * Returns 0 if the wait is for one of our queues and its end must be reported.
 */
static int begin(struct frontrow_waiter *waiter, struct address_space *mapping,
		 bool surely_writeback)
{
	return frontrow_detect_wait(waiter, mapping, surely_writeback) ? 0 : 1;
}

static int wait_begins(struct kretprobe_instance *ri, struct folio *folio,
		       enum frontrow_dependency dependency, bool surely_writeback)
{
	struct frontrow_waiter *waiter = waiter_in(ri);

	*waiter = (struct frontrow_waiter) {
		.first_page = folio->index,
		.last_page = folio->index + folio_nr_pages(folio) - 1,
		.dependency = frontrow_whose_wait(dependency),
	};
	return begin(waiter, folio_mapping(folio), surely_writeback);
}

static int wait_ended(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	frontrow_detect_wait_ended((struct frontrow_waiter *)ri->data);
	return 0;
}

static int folio_wait_begins(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct folio *folio = (struct folio *)regs_get_kernel_argument(regs, 0);

	if (regs_get_kernel_argument(regs, 1) != PG_writeback)
		return 1;
	return wait_begins(ri, folio, FRONTROW_DATA, true);
}

static int buffer_wait_begins(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct buffer_head *bh =
		(struct buffer_head *)regs_get_kernel_argument(regs, 0);
	struct folio *folio = page_folio(bh->b_page);

	return wait_begins(ri, folio, FRONTROW_META,
			   buffer_async_write(bh));
}

static int buffer_write_begins(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct buffer_head *bh =
		(struct buffer_head *)regs_get_kernel_argument(regs, 0);

	return buffer_locked(bh) ? buffer_wait_begins(ri, regs) : 1;
}

static int file_sync_begins(struct kretprobe_instance *ri, struct file *file)
{
	struct frontrow_waiter *waiter = waiter_in(ri);

	*waiter = (struct frontrow_waiter) {
		.last_page = ULONG_MAX,
		.dependency = FRONTROW_DATA,
		.wait.is_fsync = true,
	};
	return begin(waiter, file->f_mapping, true);
}

static int fsync_begins(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	return file_sync_begins(ri, (struct file *)regs_get_kernel_argument(regs, 0));
}

/*
 * From here on the mapping is only a key, so the file may be closed meanwhile.
 */
static int fsync_by_number_begins(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct file *file = fget(regs_get_kernel_argument(regs, 0));
	int err;

	if (!file)
		return 1;
	err = file_sync_begins(ri, file);
	fput(file);
	return err;
}

static int discard_wait_begins(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct super_block *sb =
		(struct super_block *)regs_get_kernel_argument(regs, 0);
	struct discard_wait *wait = (struct discard_wait *)ri->data;

	wait->begin_ns = ktime_get_ns();
	rcu_read_lock();
	wait->fd = sb->s_bdev ? frontrow_instance_on(bdev_get_queue(sb->s_bdev)) : NULL;
	if (wait->fd) {
		wait->id = wait->fd->id;
		frontrow_boost_discards(wait->fd);
	}
	rcu_read_unlock();
	return wait->fd ? 0 : 1;
}

static int discard_wait_ended(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct discard_wait *wait = (struct discard_wait *)ri->data;
	struct frontrow_data *fd;

	rcu_read_lock();
	/*
	 * Another instance may have been allocated at the same address: compare
	 * the id.
	 */
	fd = frontrow_instance_of_id(wait->id);
	if (fd)
		frontrow_discard_wait_ended(fd, ktime_get_ns() - wait->begin_ns);
	rcu_read_unlock();
	return 0;
}

static int enter(struct kretprobe_instance *ri, struct pt_regs *regs);

struct hook {
	struct kretprobe probe;
	kretprobe_handler_t begins;
	/*
	 * Module of the function; NULL for the kernel. The module may be loaded
	 * and unloaded later.
	 */
	const char *module;
	bool is_optional;
	bool is_there;
};

#define HOOK_FIELDS(function, entry, ended, type)		\
	.probe = {						\
		.kp.symbol_name	= function,			\
		.entry_handler	= enter,			\
		.handler	= ended,			\
		.data_size	= sizeof(struct type),		\
		.maxactive	= MAX_SLEEPERS,			\
	},							\
	.begins = entry

#define HOOK(function, entry, ended, type, optional)		\
	{							\
		HOOK_FIELDS(function, entry, ended, type),	\
		.is_optional = optional,			\
	}

#define HOOK_IN(owner, function, entry, ended, type)		\
	{							\
		HOOK_FIELDS(function, entry, ended, type),	\
		.module = owner,				\
		.is_optional = true,				\
	}

static struct hook hooks[] = {
	HOOK("folio_wait_bit", folio_wait_begins, wait_ended, frontrow_waiter, false),
	HOOK("__lock_buffer", buffer_wait_begins, wait_ended, frontrow_waiter, false),
	HOOK("__wait_on_buffer", buffer_wait_begins, wait_ended, frontrow_waiter, false),
	HOOK("__sync_dirty_buffer", buffer_write_begins, wait_ended, frontrow_waiter, false),
	HOOK("write_dirty_buffer", buffer_write_begins, wait_ended, frontrow_waiter, false),
	HOOK("do_fsync", fsync_by_number_begins, wait_ended, frontrow_waiter, true),
	HOOK("vfs_fsync", fsync_begins, wait_ended, frontrow_waiter, true),
	HOOK("vfs_fsync_range", fsync_begins, wait_ended, frontrow_waiter, false),
	HOOK_IN("ext4", "ext4_should_retry_alloc", discard_wait_begins, discard_wait_ended,
		discard_wait),
};

/*
 * Number of entries of each hook; the last counter is flush_hook's. A hook that
 * stays at 0 was probably inlined.
 */
static DEFINE_PER_CPU(unsigned long [ARRAY_SIZE(hooks) + 1], hits);

static int enter(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct hook *hook = container_of(get_kretprobe(ri), struct hook, probe);

	this_cpu_inc(hits[hook - hooks]);
	return hook->begins(ri, regs);
}

/*
 * Not a wait: a commit enters the flush machinery, where the scheduler does not
 * see it.
 */
static int flush_begins(struct kprobe *probe, struct pt_regs *regs)
{
	struct request *rq = (struct request *)regs_get_kernel_argument(regs, 0);
	struct frontrow_data *fd;

	this_cpu_inc(hits[ARRAY_SIZE(hooks)]);
	rcu_read_lock();
	fd = frontrow_instance_on(rq->q);
	if (fd)
		frontrow_flush_begun(fd, rq);
	rcu_read_unlock();
	return 0;
}

/* If this function is inlined, only the window covers a flush. */
static struct kprobe flush_hook = {
	.symbol_name = "blk_insert_flush",
	.pre_handler = flush_begins,
};
static bool flush_hooked;

static const char *cannot_probe(int err)
{
	switch (err) {
	case -EOPNOTSUPP:
		return "this kernel lacks CONFIG_KRETPROBES";
	case -ENOENT:
		return "this kernel has no function of that name";
	case -ENOMEM:
		return "there is no memory; free some and load the module again";
	default:
		return "this kernel refuses it";
	}
}

/*
 * Serializes registration of hooks by this module's init and exit and by the
 * notifier of other modules.
 */
static DEFINE_MUTEX(hooks_lock);

static int register_hook(struct hook *hook)
{
	int err;

	if (hook->is_there)
		return 0;
	/*
	 * Registration fills in the address and rejects a probe that has one.
	 */
	hook->probe.kp.addr = NULL;
	hook->probe.kp.flags = 0;
	err = register_kretprobe(&hook->probe);
	WRITE_ONCE(hook->is_there, !err);
	return err;
}

static void unregister_hook(struct hook *hook)
{
	if (hook->is_there)
		unregister_kretprobe(&hook->probe);
	WRITE_ONCE(hook->is_there, false);
}

static void unregister_hooks(void)
{
	int i;

	for (i = ARRAY_SIZE(hooks) - 1; i >= 0; i--)
		unregister_hook(&hooks[i]);
}

/* File systems may be loaded after this module and unloaded before it. */
static int module_changed(struct notifier_block *block, unsigned long event, void *data)
{
	const struct module *module = data;
	int i;

	mutex_lock(&hooks_lock);
	for (i = 0; i < ARRAY_SIZE(hooks); i++) {
		struct hook *hook = &hooks[i];

		if (!hook->module || strcmp(hook->module, module->name))
			continue;
		if (event == MODULE_STATE_LIVE)
			register_hook(hook);
		else if (event == MODULE_STATE_GOING)
			unregister_hook(hook);
	}
	mutex_unlock(&hooks_lock);
	return NOTIFY_OK;
}

static struct notifier_block module_notifier = {
	.notifier_call = module_changed,
};

static int register_hooks(void)
{
	int err = 0, i;

	mutex_lock(&hooks_lock);
	for (i = 0; i < ARRAY_SIZE(hooks); i++) {
		err = register_hook(&hooks[i]);
		if (!err)
			continue;
		if (!hooks[i].is_optional) {
			pr_err("frontrow: cannot probe %s: %s (error %d)\n",
			       hooks[i].probe.kp.symbol_name, cannot_probe(err), err);
			break;
		}
		err = 0;
	}
	mutex_unlock(&hooks_lock);
	return err;
}

int frontrow_probes_init(void)
{
	int err;

	/*
	 * Register the notifier first: otherwise a file system that is loaded
	 * meanwhile is missed.
	 */
	err = register_module_notifier(&module_notifier);
	if (err)
		return err;
	err = register_hooks();
	if (err) {
		unregister_module_notifier(&module_notifier);
		unregister_hooks();
		return err;
	}
	flush_hooked = !register_kprobe(&flush_hook);
	return 0;
}

void frontrow_probes_exit(void)
{
	if (flush_hooked)
		unregister_kprobe(&flush_hook);
	unregister_module_notifier(&module_notifier);
	unregister_hooks();
}

/* Number of waits without a free probe instance. */
unsigned int frontrow_probes_missed(void)
{
	unsigned int missed = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(hooks); i++)
		missed += hooks[i].probe.nmissed;
	return missed;
}

int frontrow_probes_emit_hits(char *page, int length)
{
	int i, begin = length;

	for (i = 0; i < ARRAY_SIZE(hooks); i++)
		if (READ_ONCE(hooks[i].is_there))
			length += frontrow_detect_emit(page, length, "probe",
						       hooks[i].probe.kp.symbol_name,
						       &hits[i]);
	if (flush_hooked)
		length += frontrow_detect_emit(page, length, "probe",
					       flush_hook.symbol_name,
					       &hits[ARRAY_SIZE(hooks)]);
	return length - begin;
}
