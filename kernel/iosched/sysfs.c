// SPDX-License-Identifier: GPL-2.0
/* queue/iosched/: settings, the lists of cgroups by role, and counters. */
#include "frontrow.h"

static ssize_t boost_show(struct elevator_queue *e, char *page)
{
	struct frontrow_data *fd = e->elevator_data;
	unsigned long mask = READ_ONCE(fd->boost_mask);
	int dependency, length = 0;

	for (dependency = 0; dependency < FRONTROW_NR_DEPENDENCIES; dependency++)
		if (mask & BIT(dependency))
			length += sysfs_emit_at(page, length, "%s%s",
						length ? " " : "",
						frontrow_dependency_names[dependency]);
	return length + sysfs_emit_at(page, length, "%s\n", mask ? "" : "none");
}

static int dependency_by_name(const char *name)
{
	int dependency;

	for (dependency = 0; dependency < FRONTROW_NR_DEPENDENCIES; dependency++)
		if (!strcmp(name, frontrow_dependency_names[dependency]))
			return dependency;
	return -EINVAL;
}

/* Accepts "all", "none", or dependencies separated by spaces or commas. */
static ssize_t boost_store(struct elevator_queue *e, const char *page, size_t count)
{
	struct frontrow_data *fd = e->elevator_data;
	char *copy, *rest, *word;
	unsigned long mask = 0;
	int dependency = 0;

	copy = kstrndup(page, count, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	rest = copy;
	while ((word = strsep(&rest, " ,\n"))) {
		if (!*word || !strcmp(word, "none"))
			continue;
		if (!strcmp(word, "all")) {
			mask = GENMASK(FRONTROW_NR_DEPENDENCIES - 1, 0);
			continue;
		}
		dependency = dependency_by_name(word);
		if (dependency < 0)
			break;
		mask |= BIT(dependency);
	}
	kfree(copy);
	if (dependency < 0)
		return dependency;
	WRITE_ONCE(fd->boost_mask, mask);
	return count;
}

static ssize_t store_within(unsigned int *value, const char *page, size_t count,
			    unsigned int least, unsigned int most)
{
	unsigned int wanted;
	int err = kstrtouint(page, 0, &wanted);

	if (err)
		return err;
	if (wanted < least || wanted > most)
		return -ERANGE;
	WRITE_ONCE(*value, wanted);
	return count;
}

#define NUMBER(name, field, least, most)				\
static ssize_t name##_show(struct elevator_queue *e, char *page)	\
{									\
	struct frontrow_data *fd = e->elevator_data;			\
									\
	return sysfs_emit(page, "%u\n", fd->field);			\
}									\
									\
static ssize_t name##_store(struct elevator_queue *e, const char *page,	\
			    size_t count)				\
{									\
	struct frontrow_data *fd = e->elevator_data;			\
									\
	return store_within(&fd->field, page, count, least, most);	\
}

/* Never 0: starved writeback would block all writers in the end. */
NUMBER(async_share, core.async_share_percent, 1, 100)
NUMBER(background_share, core.background_share_percent, 1, 100)
NUMBER(slice_us, core.slice_us, 0, USEC_PER_SEC)

#define ROLE_LIST(name, role)						\
static ssize_t name##_show(struct elevator_queue *e, char *page)	\
{									\
	return frontrow_roles_show(e->elevator_data, role, page);	\
}									\
									\
static ssize_t name##_store(struct elevator_queue *e, const char *page,	\
			    size_t count)				\
{									\
	return frontrow_roles_store(e->elevator_data, role, page,	\
				    count) ?: count;			\
}

ROLE_LIST(foreground, FRONTROW_FOREGROUND)
ROLE_LIST(background, FRONTROW_BACKGROUND)
ROLE_LIST(visible, FRONTROW_VISIBLE)

static int emit_dependency(struct frontrow_data *fd, char *page, int length,
			   enum frontrow_dependency dependency)
{
	const char *name = frontrow_dependency_names[dependency];
	struct frontrow_counters counters;

	spin_lock_irq(&fd->lock);
	counters = fd->counters[dependency];
	spin_unlock_irq(&fd->lock);
	return sysfs_emit_at(page, length,
			     "%s_waits %llu\n%s_boosted %llu\n%s_in_device %llu\n"
			     "%s_pending %llu\n%s_pending_matched %llu\n"
			     "%s_requests %llu\n%s_wait_ns %llu\n",
			     name, counters.waits, name, counters.boosted,
			     name, counters.in_device, name, counters.pending,
			     name, counters.pending_matched,
			     name, counters.requests, name, counters.wait_ns);
}

/*
 * A line "name value" for each counter; all but the last group, now_, only
 * grow.
 */
static ssize_t stats_show(struct elevator_queue *e, char *page)
{
	struct frontrow_data *fd = e->elevator_data;
	int i, length = 0;

	for (i = 0; i < FRONTROW_NR_DEPENDENCIES; i++)
		length += emit_dependency(fd, page, length, i);
	length += sysfs_emit_at(page, length, "idle_while_waiting_ns %llu\n",
				READ_ONCE(fd->core.idle_ns));
	length += sysfs_emit_at(page, length, "throttled %llu\n",
				READ_ONCE(fd->core.nr_throttled));
	length += sysfs_emit_at(page, length, "waits_not_seen %u\n",
				frontrow_detect_missed());
	length += frontrow_detect_emit_hits(page, length);
	length += sysfs_emit_at(page, length,
				"now_longest_idle_while_waiting_ns %llu\n",
				READ_ONCE(fd->core.idle_longest_ns));
	length += sysfs_emit_at(page, length, "now_async_age_peak_ns %llu\n",
				READ_ONCE(fd->core.async_age_peak_ns));
	length += sysfs_emit_at(page, length, "now_async_bytes_per_s %llu\n",
				READ_ONCE(fd->core.budget.bytes_per_s));
	length += sysfs_emit_at(page, length, "now_async_limit %u\n",
				frontrow_async_limit(&fd->core));
	length += sysfs_emit_at(page, length, "now_async_tags %u\n",
				READ_ONCE(fd->worker_tags));
	length += sysfs_emit_at(page, length, "now_max_request_bytes %u\n",
				READ_ONCE(fd->q->limits.max_sectors) << SECTOR_SHIFT);
	return length;
}

/* Requests of each class, a line as in stats. */
static ssize_t dispatched_show(struct elevator_queue *e, char *page)
{
	struct frontrow_data *fd = e->elevator_data;
	int i, length = 0;

	for (i = 0; i < FRONTROW_NR_CLASSES; i++)
		length += sysfs_emit_at(page, length, "%s_dispatched %llu\n",
					frontrow_classes[i].name,
					READ_ONCE(fd->core.dispatched[i]));
	return length;
}

#define SETTING(name) __ATTR(name, 0644, name##_show, name##_store)
/* Readable by root only: which app has the focus is private to its user. */
#define LIST(name) __ATTR(name, 0600, name##_show, name##_store)

struct elv_fs_entry frontrow_attrs[] = {
	SETTING(boost),
	SETTING(async_share),
	SETTING(background_share),
	LIST(foreground),
	LIST(background),
	LIST(visible),
	SETTING(slice_us),
	__ATTR(stats, 0444, stats_show, NULL),
	/* Root's: the classes tell when the foreground app does I/O. */
	__ATTR(dispatched, 0400, dispatched_show, NULL),
	__ATTR_NULL
};
