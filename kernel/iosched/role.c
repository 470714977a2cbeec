// SPDX-License-Identifier: GPL-2.0
/*
 * Roles of cgroups: foreground, visible, background, other (FastTrack, section
 * 5.6).
 *
 * User space lists the cgroups of the foreground app, of visible but inactive
 * apps, each with its share of the device while the foreground waits (section
 * 7.2.3), and of background apps. All other cgroups have the role "other":
 * services that the foreground may depend on, and the kernel's threads. They
 * are served as if no list existed.
 *
 * Without a list the I/O priority decides: the idle class (ionice,
 * io.prio.class, SCHED_IDLE) is background.
 *
 * A request has the role of its bio's cgroup, asynchronous writes too (the
 * paper needed lists of LBAs for these): with the memory and io controllers on,
 * writeback is charged to the cgroup that has dirtied most of the inode's pages
 * (CONFIG_CGROUP_WRITEBACK), not to kworker.
 */
#include <linux/blk-cgroup.h>
#include <linux/cgroup.h>
#include <linux/ioprio.h>
#include <linux/slab.h>

#include "frontrow.h"

#define MAX_CGROUPS 40

struct frontrow_roles {
	struct rcu_head rcu;
	unsigned int nr;
	struct {
		struct cgroup *cgroup;
		enum frontrow_role role;
		unsigned int share_percent;	/* 0: not a visible app */
	} entry[MAX_CGROUPS];
};

static enum frontrow_role role_of(const struct frontrow_roles *roles,
				  struct cgroup *cgroup)
{
	unsigned int i;

	for (i = 0; i < roles->nr; i++)
		if (cgroup_is_descendant(cgroup, roles->entry[i].cgroup))
			return roles->entry[i].role;
	return FRONTROW_OTHER;
}

static enum frontrow_role unless_idle(enum frontrow_role role, int ioprio)
{
	if (role == FRONTROW_OTHER &&
	    IOPRIO_PRIO_CLASS(ioprio) == IOPRIO_CLASS_IDLE)
		return FRONTROW_BACKGROUND;
	return role;
}

static enum frontrow_role named(struct frontrow_data *fd, struct cgroup *cgroup)
{
	enum frontrow_role role = FRONTROW_OTHER;
	const struct frontrow_roles *roles;

	rcu_read_lock();
	roles = rcu_dereference(fd->roles);
	if (roles)
		role = role_of(roles, cgroup);
	rcu_read_unlock();
	return role;
}

#ifdef FRONTROW_ABI_NO_BIO_BLKCG_CSS
static struct cgroup_subsys_state *css_of(struct bio *bio)
{
	void *blkg = bio->bi_blkg;
	void *blkcg;

	if (!blkg)
		return NULL;
	blkcg = *(void **)(blkg + FRONTROW_ABI_OFFSET_BLKCG_GQ_BLKCG);
	return blkcg + FRONTROW_ABI_OFFSET_BLKCG_CSS;
}
#else
static struct cgroup_subsys_state *css_of(struct bio *bio)
{
	return bio_blkcg_css(bio);
}
#endif

enum frontrow_role frontrow_role_of_bio(struct frontrow_data *fd,
					struct bio *bio)
{
	enum frontrow_role role = FRONTROW_OTHER;
	struct cgroup_subsys_state *css;

	if (!bio)
		return role;
	if (unlikely(rcu_access_pointer(fd->roles))) {
		rcu_read_lock();
		css = css_of(bio);
		if (css)
			role = named(fd, css->cgroup);
		rcu_read_unlock();
	}
	return unless_idle(role, bio->bi_ioprio);
}

static int class_by_task(const struct task_struct *task)
{
	const struct io_context *ioc = task->io_context;

	return ioc ? IOPRIO_PRIO_CLASS(READ_ONCE(ioc->ioprio)) : IOPRIO_CLASS_NONE;
}

/* As in __get_task_ioprio(): without an I/O class, the CPU policy decides. */
static bool is_idle_by_priority(const struct task_struct *task)
{
	int class = class_by_task(task);

	return class == IOPRIO_CLASS_IDLE ||
	       (class == IOPRIO_CLASS_NONE && task->policy == SCHED_IDLE);
}

/* By its own class or CPU policy, not by its cgroup. */
bool frontrow_is_realtime(const struct task_struct *task)
{
	int class = class_by_task(task);

	return class == IOPRIO_CLASS_RT ||
	       (class == IOPRIO_CLASS_NONE &&
		(task->policy == SCHED_FIFO || task->policy == SCHED_RR ||
		 task->policy == SCHED_DEADLINE));
}

enum frontrow_role frontrow_role_of(struct frontrow_data *fd,
				    struct task_struct *task)
{
	enum frontrow_role role = FRONTROW_OTHER;

	if (unlikely(rcu_access_pointer(fd->roles))) {
		rcu_read_lock();
		role = named(fd, task_dfl_cgroup(task));
		rcu_read_unlock();
	}
	return role == FRONTROW_OTHER && is_idle_by_priority(task) ?
	       FRONTROW_BACKGROUND : role;
}

/*
 * The device learns the role from the request's priority: UFS sets its command
 * priority bit from it (ufshcd_prepare_req_desc_hdr). All kernels keep it in
 * the bio, some also in the request.
 */
void frontrow_mark_foreground(struct request *rq)
{
	rq->bio->bi_ioprio = IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 0);
#ifdef FRONTROW_ABI_REQUEST_IOPRIO
	rq->ioprio = rq->bio->bi_ioprio;
#endif
}

/*
 * The lists have one cgroup on each line, or "none"; visible cgroups have their
 * share before the path. Each of the first two visible cgroups has a class of
 * its own, all others share the third. Callers hold the elevator's sysfs lock,
 * or are its exit.
 */

static bool is_in_list(enum frontrow_role role, enum frontrow_role list)
{
	return min_t(unsigned int, role, FRONTROW_VISIBLE) == list;
}

/* Writes "PATH\n" or "SHARE PATH\n"; returns 0 if it does not fit. */
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

ssize_t frontrow_roles_show(struct frontrow_data *fd,
			    enum frontrow_role role, char *page)
{
	const struct frontrow_roles *roles =
		rcu_dereference_protected(fd->roles, true);
	ssize_t length = 0;
	unsigned int i;

	for (i = 0; roles && i < roles->nr; i++) {
		size_t written;

		if (!is_in_list(roles->entry[i].role, role))
			continue;
		written = emit(page + length, PAGE_SIZE - length,
			       roles->entry[i].cgroup,
			       roles->entry[i].share_percent);
		if (!written)
			break;
		length += written;
	}
	return length ?: sysfs_emit(page, "none\n");
}

/*
 * cgroup_get() and cgroup_put() test CSS_NO_REF, which never changes. Other
 * bits of the same word change while the cgroup is removed, under cgroup_mutex,
 * which is not held here: hence data_race().
 */
static void get_cgroup(struct cgroup *cgroup)
{
	data_race((cgroup_get(cgroup), 0));
}

static void put_cgroup(struct cgroup *cgroup)
{
	data_race((cgroup_put(cgroup), 0));
}

static void put_roles(struct frontrow_roles *roles)
{
	unsigned int i;

	if (!roles)
		return;
	for (i = 0; i < roles->nr; i++)
		put_cgroup(roles->entry[i].cgroup);
	kfree(roles);
}

static void put_roles_rcu(struct rcu_head *rcu)
{
	put_roles(container_of(rcu, struct frontrow_roles, rcu));
}

static int add(struct frontrow_roles *roles, struct cgroup *cgroup,
	       enum frontrow_role role, unsigned int share_percent)
{
	if (roles->nr == MAX_CGROUPS) {
		put_cgroup(cgroup);
		return -E2BIG;
	}
	roles->entry[roles->nr].cgroup = cgroup;
	roles->entry[roles->nr].role = role;
	roles->entry[roles->nr].share_percent = share_percent;
	roles->nr++;
	return 0;
}

/* Copies the entries of the other lists. */
static int keep_others(struct frontrow_roles *roles,
		       const struct frontrow_roles *old,
		       enum frontrow_role role)
{
	unsigned int i;
	int err = 0;

	for (i = 0; old && i < old->nr && !err; i++) {
		if (is_in_list(old->entry[i].role, role))
			continue;
		get_cgroup(old->entry[i].cgroup);
		err = add(roles, old->entry[i].cgroup, old->entry[i].role,
			  old->entry[i].share_percent);
	}
	return err;
}

/*
 * A user can remove a cgroup after user space has named it and before it is
 * looked up here. It is left out, so that the other entries take effect.
 * -ENOENT if no entry is left.
 */
static int add_named(struct frontrow_roles *roles, char *lines,
		     enum frontrow_role role)
{
	bool is_any_found = false, is_any_gone = false;
	unsigned int share_percent = 0;
	char *line;
	int err = 0;

	while (!err && (line = strsep(&lines, "\n"))) {
		struct cgroup *cgroup;

		if (!*line || !strcmp(line, "none"))
			continue;
		if (role >= FRONTROW_VISIBLE) {
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
		err = add(roles, cgroup, role, share_percent);
		if (role >= FRONTROW_VISIBLE && role < FRONTROW_NR_ROLES - 1)
			role++;
	}
	return !err && is_any_gone && !is_any_found ? -ENOENT : err;
}

/*
 * A class keeps its share after its last app has left, since requests may be
 * queued in it. The whole background gets at most half of the smallest visible
 * share.
 */
static void set_shares(struct frontrow_data *fd,
		       const struct frontrow_roles *roles)
{
	unsigned int share_percent[FRONTROW_NR_VISIBLE] = {};
	unsigned int least_percent = 200;
	unsigned int i;

	for (i = 0; roles && i < roles->nr; i++)
		if (roles->entry[i].share_percent)
			share_percent[roles->entry[i].role - FRONTROW_VISIBLE] +=
				roles->entry[i].share_percent;
	for (i = 0; i < FRONTROW_NR_VISIBLE; i++) {
		if (!share_percent[i])
			continue;
		least_percent = min(least_percent, share_percent[i]);
		WRITE_ONCE(fd->core.visible_share_percent[i],
			   min(share_percent[i], 100U));
	}
	WRITE_ONCE(fd->core.background_most_percent, max(least_percent / 2, 1U));
}

/* Replaces the list of @role; on an error it stays as it was. */
int frontrow_roles_store(struct frontrow_data *fd,
			 enum frontrow_role role, const char *page,
			 size_t count)
{
	struct frontrow_roles *old = rcu_dereference_protected(fd->roles, true);
	struct frontrow_roles *roles = kzalloc(sizeof(*roles), GFP_KERNEL);
	char *lines = kstrndup(page, count, GFP_KERNEL);
	int err = -ENOMEM;

	if (roles && lines)
		err = keep_others(roles, old, role);
	if (!err)
		err = add_named(roles, lines, role);
	kfree(lines);
	if (err || !roles->nr) {
		put_roles(roles);
		roles = NULL;
	}
	if (err)
		return err;
	set_shares(fd, roles);
	rcu_assign_pointer(fd->roles, roles);
	WRITE_ONCE(fd->core.has_roles, roles);
	/*
	 * A change of focus writes several lists: do not block for a grace
	 * period.
	 */
	if (old)
		call_rcu(&old->rcu, put_roles_rcu);
	return 0;
}

void frontrow_roles_exit(struct frontrow_data *fd)
{
	put_roles(rcu_dereference_protected(fd->roles, true));
}
