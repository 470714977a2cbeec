// SPDX-License-Identifier: GPL-2.0
#include "simulate.h"

/* A run that is not over by then hangs. */
#define DRAIN_NS	(60 * NSEC_PER_SEC)
#define FLUSH_NS	(2 * NSEC_PER_MSEC)

static void broke(struct sim *sim, const char *rule)
{
	if (!sim->broken)
		sim->broken = rule;
}

#define MUST(sim, holds) do { if (!(holds)) broke(sim, #holds); } while (0)

/* xorshift64* */
u64 sim_below(struct sim *sim, u64 limit)
{
	sim->random ^= sim->random >> 12;
	sim->random ^= sim->random << 25;
	sim->random ^= sim->random >> 27;
	return limit ? (sim->random * 0x2545F4914F6CDD1DULL >> 11) % limit : 0;
}

void sim_init(struct sim *sim, const struct device *device, u64 seed)
{
	memset(sim, 0, sizeof(*sim));
	sim->device = *device;
	sim->random = seed * 0x9E3779B97F4A7C15ULL + 1;
	sim->now_ns = NSEC_PER_SEC;
	sim->look_again_ns = U64_MAX;
	sim->core.depth = device->depth;
	sim->core.is_serial = device->channels == 1;
	sim->core.most_bytes = 1 << 20;
	frontrow_core_init(&sim->core, sim->now_ns);
	sim->slice_bytes = sim->core.slice_bytes;
}

struct actor *sim_add(struct sim *sim, const struct actor *actor)
{
	struct actor *added = &sim->actors[sim->nr_actors++];

	*added = *actor;
	/* A task waits for one thing at a time. */
	if (actor->kind == FSYNC)
		added->depth = 1;
	added->next_ns = max(sim->now_ns, actor->from_ns) + sim_below(sim, actor->think_ns + 1);
	if (actor->role != FRONTROW_OTHER)
		sim->core.has_roles = true;
	return added;
}

/* An opaque key for a file's pages. */
static const void *mapping_of(const struct actor *actor)
{
	static char files[MAX_ACTORS];

	return actor->kind == READ || actor->kind == DISCARD ? NULL : &files[actor->file];
}

static struct sim_request *free_request(struct sim *sim)
{
	unsigned int i;

	for (i = 0; i < MAX_REQUESTS; i++)
		if (!sim->requests[i].actor) {
			sim->nr_used = max(sim->nr_used, i + 1);
			return &sim->requests[i];
		}
	return NULL;
}

static struct sim_request *request_of(struct frontrow_item *item)
{
	return container_of(item, struct sim_request, item);
}

/* Class of the writes of @mapping that somebody waits for, else @class. */
static enum frontrow_class awaited(struct sim *sim, const void *mapping,
				   enum frontrow_class class)
{
	unsigned int i;

	for (i = 0; i < sim->nr_actors; i++) {
		const struct actor *actor = &sim->actors[i];

		if (actor->kind == FSYNC && actor->wait_until_ns &&
		    mapping_of(actor) == mapping)
			class = min(class, frontrow_class_for_waiter(actor->role, actor->wait.level,
								    false));
	}
	return class;
}

static void send(struct sim *sim, struct actor *actor)
{
	struct sim_request *request = free_request(sim);
	struct frontrow_item *item = &request->item;
	enum frontrow_class class;

	memset(request, 0, sizeof(*request));
	request->actor = actor;
	request->came_ns = sim->now_ns;
	item->inserted_ns = sim->now_ns;
	item->owner = actor->owner;
	item->role = actor->role;
	item->mapping = mapping_of(actor);
	item->is_read = actor->kind == READ;
	item->is_write = actor->kind == SYNC_WRITE || actor->kind == ASYNC_WRITE;
	item->is_discard = actor->kind == DISCARD;
	item->is_sync = actor->kind == READ || actor->kind == SYNC_WRITE;
	item->by_kernel_thread = actor->by_kernel_thread;
	/* The block layer splits what is larger. */
	item->bytes = frontrow_cost_bytes(min(actor->bytes, sim->slice_bytes),
					  !item->is_discard);
	frontrow_identify(&sim->core, item, sim->now_ns);
	class = item->own_class;
	if (item->is_write && frontrow_may_be_promoted(class))
		class = awaited(sim, item->mapping, class);
	frontrow_insert(&sim->core, item, class, false);
	sim->rests = false;
	actor->nr_here++;
}

static struct sim_request *write_of(struct sim *sim, const void *mapping)
{
	unsigned int i;

	for (i = 0; i < sim->nr_used; i++)
		if (sim->requests[i].actor && sim->requests[i].item.mapping == mapping)
			return &sim->requests[i];
	return NULL;
}

/* As wait.c does: all queued writes of the file are promoted. */
static void promote(struct sim *sim, const struct actor *actor)
{
	enum frontrow_class class =
		frontrow_class_for_waiter(actor->role, actor->wait.level, false);
	unsigned int i;

	for (i = 0; i < sim->nr_used; i++) {
		struct frontrow_item *item = &sim->requests[i].item;

		if (sim->requests[i].actor && item->state == FRONTROW_RQ_QUEUED &&
		    item->mapping == mapping_of(actor) &&
		    frontrow_may_be_promoted(item->class) &&
		    frontrow_is_more_urgent(class, item->class))
			frontrow_reclass(&sim->core, item, class, sim->now_ns);
	}
}

static void wait_begins(struct sim *sim, struct actor *actor)
{
	struct sim_request *awaited = write_of(sim, mapping_of(actor));

	actor->next_ns = sim->now_ns + NSEC_PER_MSEC;
	if (!awaited)
		return;
	actor->waits_for = awaited - sim->requests;
	actor->wait_from_ns = sim->now_ns;
	actor->wait_until_ns = U64_MAX;
	actor->wait = (struct frontrow_wait) {
		.owner = actor->owner,
		.is_fsync = true,
		.level = frontrow_level_of(&sim->core, actor->role, false, actor->owner,
					   sim->now_ns),
	};
	frontrow_waiter_begins(&sim->core, &actor->wait, sim->now_ns);
	sim->rests = false;
	promote(sim, actor);
	actor->nr_here = 1;
}

/* Its write is done; its flush takes a while outside the queue. */
static void flush(struct sim *sim, struct actor *actor)
{
	struct sim_request *request = free_request(sim);

	memset(request, 0, sizeof(*request));
	request->actor = actor;
	request->item.owner = actor->owner;
	request->item.role = actor->role;
	request->item.is_sync = true;
	frontrow_flush_begins(&sim->core, &request->item, sim->now_ns);
	actor->waits_for = -1 - (int)(request - sim->requests);
	actor->wait_until_ns = sim->now_ns + FLUSH_NS;
}

static void rest(struct sim *sim, struct actor *actor, u64 took_ns)
{
	actor->done++;
	actor->longest_ns = max(actor->longest_ns, took_ns);
	actor->next_ns = sim->now_ns + sim_below(sim, actor->think_ns + 1);
}

static void wait_ends(struct sim *sim, struct actor *actor)
{
	struct sim_request *request = &sim->requests[-1 - actor->waits_for];

	frontrow_flush_ends(&sim->core, &request->item, true, sim->now_ns);
	request->actor = NULL;
	frontrow_waiter_ends(&sim->core, &actor->wait, sim->now_ns);
	actor->wait_until_ns = 0;
	actor->nr_here = 0;
	rest(sim, actor, sim->now_ns - actor->wait_from_ns);
}

static void dirty(struct sim *sim, struct actor *actor)
{
	frontrow_throttled(&sim->core, actor->role, actor->owner, actor->bytes, sim->now_ns);
	rest(sim, actor, 0);
	actor->next_ns = sim->now_ns + max(NSEC_PER_MSEC, actor->think_ns);
}

static void complete(struct sim *sim, struct sim_request *request)
{
	struct actor *actor = request->actor;
	unsigned int i;

	frontrow_complete(&sim->core, &request->item, sim->now_ns);
	if (sim->core.is_slice_new)
		sim->slice_bytes = sim->core.slice_bytes;
	sim->core.is_slice_new = false;
	request->actor = NULL;
	actor->nr_here--;
	actor->done_bytes += request->item.bytes;
	rest(sim, actor, sim->now_ns - request->came_ns);
	for (i = 0; i < sim->nr_actors; i++)
		if (sim->actors[i].kind == FSYNC && sim->actors[i].wait_until_ns == U64_MAX &&
		    &sim->requests[sim->actors[i].waits_for] == request)
			flush(sim, &sim->actors[i]);
}

/* The device begins as many requests as it has channels, in the order they came. */
static void work(struct sim *sim)
{
	const struct device *device = &sim->device;
	unsigned int busy = 0, i;

	for (;;) {
		struct sim_request *next = NULL;

		busy = 0;
		for (i = 0; i < sim->nr_used; i++) {
			struct sim_request *each = &sim->requests[i];

			if (!each->actor || each->item.state != FRONTROW_RQ_IN_DEVICE)
				continue;
			if (each->ends_ns)
				busy++;
			else if (!next || each->order < next->order)
				next = each;
		}
		if (!next || busy >= device->channels)
			return;
		next->ends_ns = sim->now_ns + device->command_ns +
				(u64)next->item.bytes * NSEC_PER_SEC / device->bytes_per_s;
		if (device->stall_every && next->order % device->stall_every == 0 &&
		    (!device->only_background_stalls ||
		     next->item.role == FRONTROW_BACKGROUND))
			next->ends_ns += device->stall_ns;
	}
}

/* What must hold whatever happens. */
static void check(struct sim *sim)
{
	const struct frontrow_core *core = &sim->core;
	unsigned int queued = 0, in_device = 0, grouped = 0, class;

	for (class = 0; class < FRONTROW_NR_CLASSES; class++) {
		queued += core->queued[class];
		in_device += core->in_device[class];
		grouped += frontrow_is_group(class) ? core->queued[class] : 0;
		MUST(sim, !core->queued[class] == !frontrow_first(core, class));
	}
	MUST(sim, queued == core->nr_queued && grouped == core->nr_grouped);
	MUST(sim, in_device == core->nr_in_device);
}

static void note_idle(struct sim *sim)
{
	bool is_idle = sim->core.nr_queued && !sim->core.nr_in_device;

	if (is_idle && !sim->idle_from_ns)
		sim->idle_from_ns = sim->now_ns;
	if (is_idle)
		sim->idle_longest_ns = max(sim->idle_longest_ns, sim->now_ns - sim->idle_from_ns);
	else
		sim->idle_from_ns = 0;
}

static bool any_is_overdue(const struct sim *sim)
{
	enum frontrow_class class;

	for (class = 0; class < FRONTROW_NR_CLASSES; class++) {
		const struct frontrow_item *oldest = frontrow_oldest(&sim->core, class);
		u64 deadline_ns = frontrow_classes[class].deadline_ms * NSEC_PER_MSEC;

		if (oldest && deadline_ns && oldest->in_class_since_ns + deadline_ns < sim->now_ns)
			return true;
	}
	return false;
}

/* What must hold of a request that has just been chosen. */
static void check_chosen(struct sim *sim, const struct frontrow_item *item,
			 const struct frontrow_view *view, bool is_overdue)
{
	const struct frontrow_core *core = &sim->core;
	unsigned int async = core->in_device[FRONTROW_FG_ASYNC] +
			     core->in_device[FRONTROW_ASYNC] +
			     core->in_device[FRONTROW_DISCARD];
	bool is_open = frontrow_is_open(view, item->class);

	MUST(sim, item->state == FRONTROW_RQ_IN_DEVICE);
	/* Beyond that they would wait in front of what is more urgent and comes later. */
	if (frontrow_classes[item->class].is_async && is_open)
		MUST(sim, async <= frontrow_async_limit(core));
	/* But for those that are overdue. */
	if (item->role != FRONTROW_BACKGROUND || !is_open || !frontrow_is_group(item->class) ||
	    is_overdue)
		return;
	MUST(sim, core->nr_in_device <= core->depth);
	if (item->is_background_write && core->background_bytes > MIN_SLICE_BYTES)
		MUST(sim, core->background_bytes <=
			  max((u64)item->bytes, core->budget.bytes_per_s / 1000 * 5 / 2 + 1000));
}

/*
 * The block layer asks for requests until there is none, for some more than the
 * device can hold.
 */
static void dispatch(struct sim *sim)
{
	struct frontrow_view view;
	struct frontrow_item *item;
	bool is_overdue;

	sim->look_again_ns = U64_MAX;
	if (sim->rests && !frontrow_has_rested(&sim->core))
		return work(sim);
	sim->rests = false;
	while (sim->core.nr_queued && sim->core.nr_in_device < sim->device.depth + 2) {
		frontrow_look(&sim->core, sim->now_ns, &view);
		is_overdue = any_is_overdue(sim);
		item = frontrow_next(&sim->core, &view);
		sim->decisions++;
		if (!item) {
			sim->rests = frontrow_rests(&sim->core, &view);
			if (sim->rests)
				break;
			sim->look_again_ns = frontrow_look_again_ns(&sim->core, &view);
			MUST(sim, sim->core.nr_in_device || sim->look_again_ns != U64_MAX);
			MUST(sim, sim->look_again_ns > sim->now_ns);
			break;
		}
		check_chosen(sim, item, &view, is_overdue);
		request_of(item)->order = sim->decisions;
	}
	frontrow_count_idle(&sim->core, sim->now_ns);
	work(sim);
	check(sim);
}

static bool may_send(const struct sim *sim, const struct actor *actor, u64 until_ns)
{
	u64 end_ns = actor->until_ns ? min(actor->until_ns, until_ns) : until_ns;

	return actor->nr_here < actor->depth && sim->now_ns < end_ns &&
	       sim->now_ns >= actor->from_ns;
}

/* Begins and ends whatever is due. */
static void act(struct sim *sim, u64 until_ns)
{
	unsigned int i;

	for (i = 0; i < sim->nr_used; i++)
		if (sim->requests[i].actor && sim->requests[i].ends_ns &&
		    sim->requests[i].ends_ns <= sim->now_ns)
			complete(sim, &sim->requests[i]);
	for (i = 0; i < sim->nr_actors; i++) {
		struct actor *actor = &sim->actors[i];

		if (actor->wait_until_ns && actor->wait_until_ns <= sim->now_ns)
			wait_ends(sim, actor);
		while (may_send(sim, actor, until_ns) && actor->next_ns <= sim->now_ns) {
			if (actor->kind == FSYNC) {
				wait_begins(sim, actor);
				break;
			}
			if (actor->kind == DIRTY) {
				dirty(sim, actor);
				break;
			}
			send(sim, actor);
			if (actor->think_ns)
				actor->next_ns = sim->now_ns + sim_below(sim, actor->think_ns);
		}
	}
}

/* Time of the next event; U64_MAX if there is none. */
static u64 next_event_ns(const struct sim *sim, u64 until_ns)
{
	u64 next_ns = sim->look_again_ns;
	unsigned int i;

	for (i = 0; i < sim->nr_used; i++)
		if (sim->requests[i].actor && sim->requests[i].ends_ns)
			next_ns = min(next_ns, sim->requests[i].ends_ns);
	for (i = 0; i < sim->nr_actors; i++) {
		const struct actor *actor = &sim->actors[i];

		if (actor->wait_until_ns)
			next_ns = min(next_ns, actor->wait_until_ns);
		if (actor->nr_here < actor->depth && actor->next_ns < until_ns &&
		    (!actor->until_ns || actor->next_ns < actor->until_ns))
			next_ns = min(next_ns, max(actor->next_ns, actor->from_ns));
	}
	return next_ns;
}

/* All is served: nothing may be left in the policy's books. */
static void check_empty(struct sim *sim)
{
	const struct frontrow_core *core = &sim->core;
	unsigned int i;

	MUST(sim, !core->nr_queued && !core->nr_in_device && !core->nr_flushing);
	MUST(sim, !core->nr_awaited && !core->nr_waiters && !core->background_bytes);
	for (i = 0; i < FRONTROW_NR_LEVELS; i++)
		MUST(sim, !core->chains[i].nr_requests && !core->chains[i].nr_waiting &&
			  !core->chains[i].nr_fsyncs);
	for (i = 0; i < 1 << FRONTROW_OWNER_BITS; i++)
		MUST(sim, !core->nr_owned[i] && !core->processes[i].nr_here);
}

void sim_run(struct sim *sim, u64 until_ns)
{
	until_ns += sim->now_ns;
	while (!sim->broken) {
		u64 next_ns;

		act(sim, until_ns);
		dispatch(sim);
		note_idle(sim);
		next_ns = next_event_ns(sim, until_ns);
		if (next_ns == U64_MAX)
			break;
		sim->now_ns = max(next_ns, sim->now_ns);
		note_idle(sim);
		if (sim->now_ns > until_ns + DRAIN_NS)
			broke(sim, "what is queued is served in the end");
	}
	if (!sim->broken)
		check_empty(sim);
}
