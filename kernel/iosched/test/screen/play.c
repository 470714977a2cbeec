// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>

#include "play.h"

#define MOST_IO		4096
/* A run that takes longer has shown enough. */
#define LONGEST_NS	(600ULL * NSEC_PER_SEC)
/* What jbd2 writes for a small transaction: descriptor, metadata. */
#define JOURNAL_BYTES	(12U << 10)
/* The kernel's time for a request that nothing waits behind. */
#define HOST_NS		(20 * NSEC_PER_USEC)

/* Steps of a sync, each after the completion of the one before. */
enum step { NO_STEP, DATA, JOURNAL, FLUSH, COMMIT };

struct actor {
	const struct task *task;
	unsigned int owner;
	enum frontrow_role role;
	u32 place;		/* next page in order */
	enum step step;
	unsigned int here;	/* requests */
	u32 left;		/* bytes of this go that are not sent yet */
	u64 began_ns, next_ns;
	u64 goes, total_ns, worst_ns, bytes;
	struct frontrow_wait wait;
	struct io flush;	/* the commit's, outside the queue */
};

struct play {
	struct queue queue;
	struct actor actors[PLAY_MOST_TASKS + 1];
	unsigned int nr_actors;
	u32 area_pages;
	u64 random;
	u64 now_ns;
	u64 decisions;
	struct io *free;
	struct io io[MOST_IO];
};

static u32 below(struct play *play, u32 limit)
{
	play->random = play->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (play->random >> 33) % limit;
}

static u32 place_of(struct play *play, struct actor *actor, u32 pages)
{
	u32 slots = play->area_pages / pages;

	if (!actor->task->is_in_order)
		return below(play, slots) * pages;
	if (actor->place + pages > play->area_pages)
		actor->place = 0;
	actor->place += pages;
	return actor->place - pages;
}

static struct io *new_io(struct play *play, struct actor *actor, enum ftl_op op, u32 bytes)
{
	struct io *io = play->free;

	if (!io)
		abort();
	play->free = io->next;
	memset(io, 0, sizeof(*io));
	io->sender = actor;
	io->op = op;
	io->pages = DIV_ROUND_UP(bytes, FTL_PAGE_BYTES);
	io->lba = place_of(play, actor, io->pages);
	io->item.owner = actor->owner;
	io->item.role = actor->role;
	io->item.bytes = bytes;
	io->item.is_read = op == FTL_READ;
	io->item.is_write = op == FTL_WRITE;
	io->item.is_sync = true;
	io->item.mapping = op == FTL_WRITE ? actor : NULL;
	actor->here++;
	return io;
}

static void send(struct play *play, struct io *io)
{
	queue_insert(&play->queue, io, play->now_ns);
}

/* As many requests as the largest size makes of it. */
static void send_all(struct play *play, struct actor *actor, enum ftl_op op, u32 bytes)
{
	while (bytes) {
		u32 part = min((u64)bytes, play->queue.slice_bytes);

		send(play, new_io(play, actor, op, part));
		bytes -= part;
	}
}

/* A commit leaves the queue for the block layer's flush machinery. */
static void flush_begins(struct play *play, struct actor *actor)
{
	struct io *io = new_io(play, actor, FTL_FLUSH, FTL_PAGE_BYTES);

	io->item.by_kernel = io->item.by_kernel_thread = true;
	io->item.role = FRONTROW_OTHER;
	if (play->queue.scheduler == FRONTROW)
		frontrow_flush_begins(&play->queue.core, &io->item, play->now_ns);
	disk_give(play->queue.disk, io, play->now_ns);
}

static void commit_begins(struct play *play, struct io *flush)
{
	flush->op = FTL_WRITE;
	flush->fua = true;
	flush->pages = 1;
	disk_give(play->queue.disk, flush, play->now_ns);
}

static void wait_begins(struct play *play, struct actor *actor)
{
	if (play->queue.scheduler != FRONTROW)
		return;
	actor->wait = (struct frontrow_wait) {
		.owner = actor->owner,
		.is_fsync = true,
		.level = frontrow_level_of(&play->queue.core, actor->role, false, actor->owner,
					   play->now_ns),
	};
	frontrow_waiter_begins(&play->queue.core, &actor->wait, play->now_ns);
}

static void go_ends(struct play *play, struct actor *actor)
{
	u64 took_ns = play->now_ns - actor->began_ns;

	if (actor->task->habit == SYNCS && play->queue.scheduler == FRONTROW)
		frontrow_waiter_ends(&play->queue.core, &actor->wait, play->now_ns);
	actor->goes++;
	actor->total_ns += took_ns;
	actor->worst_ns = max(actor->worst_ns, took_ns);
	actor->step = NO_STEP;
	actor->next_ns = play->now_ns + HOST_NS + actor->task->think_us * NSEC_PER_USEC;
}

static void read_on(struct play *play, struct actor *actor)
{
	while (actor->left && actor->here < actor->task->depth) {
		u32 part = min((u64)actor->left, min(play->queue.slice_bytes, 128ULL << 10));

		send(play, new_io(play, actor, FTL_READ, part));
		actor->left -= part;
	}
}

static void go_begins(struct play *play, struct actor *actor)
{
	actor->began_ns = play->now_ns;
	actor->next_ns = U64_MAX;
	if (actor->task->habit == READS) {
		actor->left = actor->task->bytes;
		read_on(play, actor);
		return;
	}
	actor->step = DATA;
	wait_begins(play, actor);
	send_all(play, actor, FTL_WRITE, actor->task->bytes);
}

static void write_back(struct play *play, struct actor *actor)
{
	u32 bytes = min((u64)actor->task->bytes, play->queue.slice_bytes);

	while (actor->here < queue_worker_tags(&play->queue)) {
		struct io *io = new_io(play, actor, FTL_WRITE, bytes);

		io->item.is_sync = false;
		io->item.by_kernel_thread = true;
		send(play, io);
	}
}

static void journal(struct play *play, struct actor *actor)
{
	struct io *io = new_io(play, actor, FTL_WRITE, JOURNAL_BYTES);

	io->item.by_kernel = io->item.by_kernel_thread = true;
	io->item.role = FRONTROW_OTHER;
	send(play, io);
}

/* All requests of a step are done. */
static void step_ends(struct play *play, struct actor *actor)
{
	switch (actor->step) {
	case DATA:
		actor->step = JOURNAL;
		journal(play, actor);
		return;
	case JOURNAL:
		actor->step = FLUSH;
		flush_begins(play, actor);
		return;
	default:
		go_ends(play, actor);
	}
}

static void give_back(struct play *play, struct io *io)
{
	io->next = play->free;
	play->free = io;
}

static void done(struct play *play, struct io *io)
{
	struct actor *actor = io->sender;

	if (actor->step == FLUSH) {
		actor->step = COMMIT;
		commit_begins(play, io);
		return;
	}
	if (actor->step == COMMIT && play->queue.scheduler == FRONTROW)
		frontrow_flush_ends(&play->queue.core, &io->item, true, play->now_ns);
	queue_completed(&play->queue, io, play->now_ns);
	actor->here--;
	actor->bytes += io->pages * FTL_PAGE_BYTES;
	give_back(play, io);
	if (actor->task->habit == READS)
		read_on(play, actor);
	if (!actor->here && actor->task->habit != WRITES_BACK)
		step_ends(play, actor);
}

static void act(struct play *play)
{
	unsigned int i;

	for (i = 0; i < play->nr_actors; i++) {
		struct actor *actor = &play->actors[i];

		if (actor->task->habit == WRITES_BACK)
			write_back(play, actor);
		else if (actor->next_ns <= play->now_ns)
			go_begins(play, actor);
	}
}

static u64 next_ns(const struct play *play)
{
	u64 found_ns = min(disk_next_ns(play->queue.disk), play->queue.look_again_ns);
	unsigned int i;

	for (i = 0; i < play->nr_actors; i++)
		if (play->actors[i].task->habit != WRITES_BACK)
			found_ns = min(found_ns, play->actors[i].next_ns);
	return found_ns;
}

static void add(struct play *play, const struct task *task, enum frontrow_role role)
{
	struct actor *actor = &play->actors[play->nr_actors++];

	actor->task = task;
	actor->owner = play->nr_actors;
	actor->role = role;
	actor->place = play->nr_actors * (play->area_pages / (PLAY_MOST_TASKS + 2));
}

static struct played result(const struct play *play, u64 from_ns)
{
	const struct actor *front = &play->actors[0];
	struct played played = {
		.mean_ns = front->goes ? front->total_ns / front->goes : U64_MAX,
		.worst_ns = front->worst_ns,
	};
	unsigned int i;

	for (i = 1; i < play->nr_actors; i++)
		played.behind_bytes += play->actors[i].bytes;
	played.behind_bytes = played.behind_bytes * 1000 /
			      ((play->now_ns - from_ns) / NSEC_PER_MSEC + 1);
	return played;
}

/* What is under way completes, so that the next run finds the disk at rest. */
static void drain(struct play *play)
{
	while (disk_next_ns(play->queue.disk) != FTL_NEVER) {
		play->now_ns = max(play->now_ns, disk_next_ns(play->queue.disk));
		while (disk_take_done(play->queue.disk, play->now_ns))
			;
	}
}

struct played play(struct disk *disk, enum scheduler scheduler, bool is_named,
		   const struct scene *scene, u32 area_mib)
{
	static struct play play;
	struct played played;
	struct io *io;
	unsigned int i;
	u64 from_ns = disk_now_ns(disk);

	memset(&play, 0, sizeof(play));
	play.area_pages = area_mib * 256;
	play.random = 1;
	play.now_ns = from_ns;
	for (i = 0; i < MOST_IO; i++)
		give_back(&play, &play.io[i]);
	queue_init(&play.queue, scheduler, disk, is_named);
	add(&play, &scene->front, is_named ? FRONTROW_FOREGROUND : FRONTROW_OTHER);
	for (i = 0; i < scene->nr_behind; i++)
		add(&play, &scene->behind[i], is_named ? FRONTROW_BACKGROUND : FRONTROW_OTHER);
	while (play.actors[0].goes < scene->goes && play.now_ns < from_ns + LONGEST_NS) {
		act(&play);
		queue_run(&play.queue, play.now_ns);
		play.now_ns = max(play.now_ns, next_ns(&play));
		while ((io = disk_take_done(disk, play.now_ns)))
			done(&play, io);
	}
	played = result(&play, from_ns);
	drain(&play);
	return played;
}
