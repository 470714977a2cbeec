// SPDX-License-Identifier: GPL-2.0
/*
 * Who is in front and who is behind (FastTrack, section 5.6).
 *
 * User space names cgroups: those of the app in front, and those of the apps
 * behind it, and those that are seen beside it, each with the share of the device
 * that it has while the foreground waits (section 7.2.3 there). What is in none,
 * the kernel's threads and services that the foreground may depend on among it,
 * is served as if nothing had been said.
 *
 * Where nobody has named a cgroup the I/O priority tells: the class idle (ionice,
 * io.prio.class, SCHED_IDLE) is the background.
 *
 * A request is its bio's cgroup's. That holds for asynchronous writes too, where
 * the paper needed lists of LBAs: with the memory and io controllers on, writeback
 * is charged to the cgroup that the inode belongs to (CONFIG_CGROUP_WRITEBACK), which
 * is whose most of its dirty pages are, not to kworker.
 */
#include <linux/blk-cgroup.h>
#include <linux/cgroup.h>
#include <linux/ioprio.h>
#include <linux/slab.h>

#include "frontrow.h"

#define MAX_CGROUPS 40

struct frontrow_grounds {
	struct rcu_head rcu;
	unsigned int nr;
	struct {
		struct cgroup *cgroup;
		enum frontrow_ground ground;
		unsigned int share_percent;	/* of what is seen */
	} entry[MAX_CGROUPS];
};

static enum frontrow_ground ground_of(const struct frontrow_grounds *grounds,
				      struct cgroup *cgroup)
{
	unsigned int i;

	for (i = 0; i < grounds->nr; i++)
		if (cgroup_is_descendant(cgroup, grounds->entry[i].cgroup))
			return grounds->entry[i].ground;
	return FRONTROW_MIDDLE;
}

static enum frontrow_ground unless_idle(enum frontrow_ground ground, int ioprio)
{
	if (ground == FRONTROW_MIDDLE &&
	    IOPRIO_PRIO_CLASS(ioprio) == IOPRIO_CLASS_IDLE)
		return FRONTROW_BACKGROUND;
	return ground;
}

static enum frontrow_ground named(struct frontrow_data *fd, struct cgroup *cgroup)
{
	enum frontrow_ground ground = FRONTROW_MIDDLE;
	const struct frontrow_grounds *grounds;

	rcu_read_lock();
	grounds = rcu_dereference(fd->grounds);
	if (grounds)
		ground = ground_of(grounds, cgroup);
	rcu_read_unlock();
	return ground;
}

enum frontrow_ground frontrow_ground_of_bio(struct frontrow_data *fd,
					    struct bio *bio)
{
	enum frontrow_ground ground = FRONTROW_MIDDLE;
	struct cgroup_subsys_state *css;

	if (!bio)
		return ground;
	if (unlikely(rcu_access_pointer(fd->grounds))) {
		rcu_read_lock();
		css = bio_blkcg_css(bio);
		if (css)
			ground = named(fd, css->cgroup);
		rcu_read_unlock();
	}
	return unless_idle(ground, bio->bi_ioprio);
}

/* As __get_task_ioprio() has it: without a class of its own, the CPU's policy tells. */
static bool is_idle_by_priority(const struct task_struct *task)
{
	const struct io_context *ioc = task->io_context;
	int class = ioc ? IOPRIO_PRIO_CLASS(READ_ONCE(ioc->ioprio)) :
			  IOPRIO_CLASS_NONE;

	return class == IOPRIO_CLASS_IDLE ||
	       (class == IOPRIO_CLASS_NONE && task->policy == SCHED_IDLE);
}

enum frontrow_ground frontrow_ground_of_current(struct frontrow_data *fd)
{
	enum frontrow_ground ground = FRONTROW_MIDDLE;

	if (unlikely(rcu_access_pointer(fd->grounds))) {
		rcu_read_lock();
		ground = named(fd, task_dfl_cgroup(current));
		rcu_read_unlock();
	}
	return ground == FRONTROW_MIDDLE && is_idle_by_priority(current) ?
	       FRONTROW_BACKGROUND : ground;
}

/*
 * The device is told by the request's priority, which is how UFS gets its
 * command priority bit (ufshcd_prepare_req_desc_hdr). Kernels keep it in the
 * bio, and some also in the request.
 */
void frontrow_mark_foreground(struct request *rq)
{
	rq->bio->bi_ioprio = IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 0);
#ifdef FRONTROW_ABI_REQUEST_IOPRIO
	rq->ioprio = rq->bio->bi_ioprio;
#endif
}

/*
 * The lists, one cgroup a line, or "none"; with a share before each that is seen.
 * Those that are seen have a class each, and from the third on one together.
 * Callers hold the elevator's sysfs lock, or are its exit.
 */

static bool is_in_list(enum frontrow_ground ground, enum frontrow_ground list)
{
	return min_t(unsigned int, ground, FRONTROW_VISIBLE) == list;
}

/* "PATH\n", or "SHARE PATH\n"; 0 if there is no room. */
static size_t emit(char *page, size_t left, struct cgroup *cgroup,
		   unsigned int share_percent)
{
	size_t length = 0;
	int written;

	if (share_percent)
		length = scnprintf(page, left, "%u ", share_percent);
	written = cgroup_path(cgroup, page + length, left - length);
	if (written < 0 || length + written + 1 >= left)
		return 0;
	page[length + written] = '\n';
	return length + written + 1;
}

ssize_t frontrow_grounds_show(struct frontrow_data *fd,
			      enum frontrow_ground ground, char *page)
{
	const struct frontrow_grounds *grounds =
		rcu_dereference_protected(fd->grounds, true);
	ssize_t length = 0;
	unsigned int i;

	for (i = 0; grounds && i < grounds->nr; i++) {
		size_t written;

		if (!is_in_list(grounds->entry[i].ground, ground))
			continue;
		written = emit(page + length, PAGE_SIZE - length,
			       grounds->entry[i].cgroup,
			       grounds->entry[i].share_percent);
		if (!written)
			break;
		length += written;
	}
	return length ?: sysfs_emit(page, "none\n");
}

/*
 * Both read in the cgroup's flags whether it is a root, which never changes. The
 * flags beside it do while the cgroup is removed, as its remover holds cgroup_mutex and we do not.
 */
static void get_cgroup(struct cgroup *cgroup)
{
	data_race((cgroup_get(cgroup), 0));
}

static void put_cgroup(struct cgroup *cgroup)
{
	data_race((cgroup_put(cgroup), 0));
}

static void put_grounds(struct frontrow_grounds *grounds)
{
	unsigned int i;

	if (!grounds)
		return;
	for (i = 0; i < grounds->nr; i++)
		put_cgroup(grounds->entry[i].cgroup);
	kfree(grounds);
}

static void put_grounds_rcu(struct rcu_head *rcu)
{
	put_grounds(container_of(rcu, struct frontrow_grounds, rcu));
}

static int add(struct frontrow_grounds *grounds, struct cgroup *cgroup,
	       enum frontrow_ground ground, unsigned int share_percent)
{
	if (grounds->nr == MAX_CGROUPS) {
		put_cgroup(cgroup);
		return -E2BIG;
	}
	grounds->entry[grounds->nr].cgroup = cgroup;
	grounds->entry[grounds->nr].ground = ground;
	grounds->entry[grounds->nr].share_percent = share_percent;
	grounds->nr++;
	return 0;
}

/* What the other lists hold stays. */
static int keep_others(struct frontrow_grounds *grounds,
		       const struct frontrow_grounds *old,
		       enum frontrow_ground ground)
{
	unsigned int i;
	int err = 0;

	for (i = 0; old && i < old->nr && !err; i++) {
		if (is_in_list(old->entry[i].ground, ground))
			continue;
		get_cgroup(old->entry[i].cgroup);
		err = add(grounds, old->entry[i].cgroup, old->entry[i].ground,
			  old->entry[i].share_percent);
	}
	return err;
}

/*
 * Any user may remove a cgroup of theirs between its being named and being looked
 * up here: it is left out, and costs nobody else their place. Of a list of which nothing
 * is left the writer hears.
 */
static int add_named(struct frontrow_grounds *grounds, char *lines,
		     enum frontrow_ground ground)
{
	bool is_any_found = false, is_any_gone = false;
	unsigned int share_percent = 0;
	char *line;
	int err = 0;

	while (!err && (line = strsep(&lines, "\n"))) {
		struct cgroup *cgroup;

		if (!*line || !strcmp(line, "none"))
			continue;
		if (ground >= FRONTROW_VISIBLE) {
			err = kstrtouint(strsep(&line, " "), 10, &share_percent);
			if (err || !line || !share_percent || share_percent > 100)
				return -EINVAL;
		}
		cgroup = cgroup_get_from_path(line);
		if (cgroup == ERR_PTR(-ENOENT)) {
			is_any_gone = true;
			continue;
		}
		if (IS_ERR(cgroup))
			return PTR_ERR(cgroup);
		is_any_found = true;
		err = add(grounds, cgroup, ground, share_percent);
		if (ground >= FRONTROW_VISIBLE && ground < FRONTROW_NR_GROUNDS - 1)
			ground++;
	}
	return !err && is_any_gone && !is_any_found ? -ENOENT : err;
}

/*
 * A class keeps its share when nobody is in it any more: some may be queued. All that
 * nobody sees has at most half of what the least visible app has.
 */
static void set_shares(struct frontrow_data *fd,
		       const struct frontrow_grounds *grounds)
{
	unsigned int share_percent[FRONTROW_NR_VISIBLE] = {};
	unsigned int least_percent = 200;
	unsigned int i;

	for (i = 0; grounds && i < grounds->nr; i++)
		if (grounds->entry[i].share_percent)
			share_percent[grounds->entry[i].ground - FRONTROW_VISIBLE] +=
				grounds->entry[i].share_percent;
	for (i = 0; i < FRONTROW_NR_VISIBLE; i++) {
		if (!share_percent[i])
			continue;
		least_percent = min(least_percent, share_percent[i]);
		WRITE_ONCE(fd->visible_share_percent[i],
			   min(share_percent[i], 100U));
	}
	WRITE_ONCE(fd->background_most_percent, max(least_percent / 2, 1U));
}

/* Replaces the whole list of @ground, or nothing. */
int frontrow_grounds_store(struct frontrow_data *fd,
			   enum frontrow_ground ground, const char *page,
			   size_t count)
{
	struct frontrow_grounds *old = rcu_dereference_protected(fd->grounds, true);
	struct frontrow_grounds *grounds = kzalloc(sizeof(*grounds), GFP_KERNEL);
	char *lines = kstrndup(page, count, GFP_KERNEL);
	int err = -ENOMEM;

	if (grounds && lines)
		err = keep_others(grounds, old, ground);
	if (!err)
		err = add_named(grounds, lines, ground);
	kfree(lines);
	if (err || !grounds->nr) {
		put_grounds(grounds);
		grounds = NULL;
	}
	if (err)
		return err;
	set_shares(fd, grounds);
	rcu_assign_pointer(fd->grounds, grounds);
	/* A change of focus writes several lists, and is to wait for no grace period. */
	if (old)
		call_rcu(&old->rcu, put_grounds_rcu);
	return 0;
}

void frontrow_grounds_exit(struct frontrow_data *fd)
{
	put_grounds(rcu_dereference_protected(fd->grounds, true));
}
