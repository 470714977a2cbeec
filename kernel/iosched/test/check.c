// SPDX-License-Identifier: GPL-2.0
/* Tests of the policy over a modelled device. */
#include "check.h"
#include "simulate.h"

#define MS	NSEC_PER_MSEC
#define SECOND	NSEC_PER_SEC

static struct sim sim;

/* A card: one request at a time. */
static const struct device serial = {
	.depth = 1, .channels = 1, .command_ns = 200 * NSEC_PER_USEC, .bytes_per_s = 50 << 20,
};

static const struct device parallel = {
	.depth = 32, .channels = 8, .command_ns = 80 * NSEC_PER_USEC, .bytes_per_s = 200 << 20,
};

/* Eight requests of any size at once, each of which takes 5 ms. */
static const struct device slow = {
	.depth = 8, .channels = 8, .command_ns = 5 * MS, .bytes_per_s = 1ULL << 40,
};

/* A card that collects: now and then a request takes 200 ms. */
static const struct device stalling = {
	.depth = 2, .channels = 1, .command_ns = 200 * NSEC_PER_USEC, .bytes_per_s = 50 << 20,
	.stall_every = 200, .stall_ns = 200 * MS,
};

#define EXPECT_SOUND(sim)							\
	do {									\
		if ((sim)->broken)						\
			fprintf(stderr, "broken: %s\n", (sim)->broken);		\
		EXPECT(!(sim)->broken);						\
	} while (0)

static void add_readers(enum frontrow_role role, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		sim_add(&sim, &(struct actor) {
			.kind = READ, .role = role, .owner = 100 + i, .depth = 1, .bytes = 4096,
		});
}

/*
 * Classes take every other dispatch once they are overdue, the longest overdue
 * first, so nobody waits for longer than his deadline and a few rounds.
 */
static void a_sync_write_is_served_beside_any_number_of_readers(void)
{
	const struct actor *writer;

	sim_init(&sim, &slow, 1);
	add_readers(FRONTROW_OTHER, 40);
	writer = sim_add(&sim, &(struct actor) {
		.kind = SYNC_WRITE, .owner = 1, .depth = 1, .bytes = 4096, .think_ns = 30 * MS,
	});
	/* Named, so that no reader is long and comes after the writer. */
	sim.core.has_roles = true;
	sim_run(&sim, 30 * SECOND);
	EXPECT_SOUND(&sim);
	EXPECT(writer->done > 50);
	EXPECT(writer->longest_ns < 250 * MS);
}

static void a_service_reads_beside_a_foreground_that_syncs(void)
{
	const struct actor *service;

	sim_init(&sim, &serial, 1);
	sim_add(&sim, &(struct actor) {
		.kind = SYNC_WRITE, .role = FRONTROW_FOREGROUND, .owner = 1, .depth = 64,
		.bytes = 128 << 10,
	});
	service = sim_add(&sim, &(struct actor) {
		.kind = READ, .owner = 2, .depth = 1, .bytes = 4096, .think_ns = 10 * MS,
	});
	sim_run(&sim, 20 * SECOND);
	EXPECT_SOUND(&sim);
	EXPECT(service->longest_ns < 300 * MS);
	EXPECT(service->done > 60);
}

static void add_syncing_service(void)
{
	sim_add(&sim, &(struct actor) {
		.kind = SYNC_WRITE, .owner = 1, .depth = 32, .bytes = 256 << 10,
	});
	sim.core.has_roles = true;
}

/* Of two closed classes neither takes the other's share. */
static void a_reader_of_the_background_does_not_starve_writeback(void)
{
	const struct actor *writeback;

	sim_init(&sim, &serial, 1);
	add_syncing_service();
	/* While the foreground writes back, both are closed. */
	sim_add(&sim, &(struct actor) {
		.kind = ASYNC_WRITE, .role = FRONTROW_FOREGROUND, .by_kernel_thread = true,
		.owner = 4, .depth = 2, .bytes = 16 << 10,
	});
	sim_add(&sim, &(struct actor) {
		.kind = READ, .role = FRONTROW_BACKGROUND, .owner = 2, .depth = 1,
		.bytes = 64 << 10,
	});
	writeback = sim_add(&sim, &(struct actor) {
		.kind = ASYNC_WRITE, .by_kernel_thread = true, .owner = 3, .depth = 4,
		.bytes = 16 << 10,
	});
	sim_run(&sim, 20 * SECOND);
	EXPECT_SOUND(&sim);
	EXPECT(writeback->done > 100);
	EXPECT(writeback->longest_ns < 1 * SECOND);
}

static void the_foregrounds_writeback_does_not_starve_beside_a_service_that_syncs(void)
{
	const struct actor *writeback;

	sim_init(&sim, &serial, 1);
	add_syncing_service();
	writeback = sim_add(&sim, &(struct actor) {
		.kind = ASYNC_WRITE, .role = FRONTROW_FOREGROUND, .by_kernel_thread = true,
		.owner = 3, .depth = 4, .bytes = 16 << 10,
	});
	sim_run(&sim, 20 * SECOND);
	EXPECT_SOUND(&sim);
	EXPECT(writeback->longest_ns < AGE_RAMP_BEGIN_NS + 100 * MS);
}

/* A device's stalls are paid by whose requests stall, not forgiven. */
static void the_background_pays_for_the_stalls_that_it_causes(void)
{
	static const struct device collecting = {
		.depth = 1, .channels = 1, .command_ns = 200 * NSEC_PER_USEC,
		.bytes_per_s = 50 << 20, .stall_every = 1, .stall_ns = 100 * MS,
		.only_background_stalls = true,
	};
	const struct actor *background;
	u64 stalled_ns;

	sim_init(&sim, &collecting, 1);
	sim_add(&sim, &(struct actor) {
		.kind = READ, .role = FRONTROW_FOREGROUND, .owner = 1, .depth = 4,
		.bytes = 64 << 10,
	});
	background = sim_add(&sim, &(struct actor) {
		.kind = SYNC_WRITE, .role = FRONTROW_BACKGROUND, .owner = 2, .depth = 4,
		.bytes = 64 << 10,
	});
	sim_run(&sim, 60 * SECOND);
	EXPECT_SOUND(&sim);
	stalled_ns = background->done * collecting.stall_ns;
	EXPECT(stalled_ns * 100 <= 60 * SECOND * 20);
	EXPECT(stalled_ns * 100 >= 60 * SECOND * 5);
}

/* A write that names gigabytes of blocks is charged as a small one. */
static void what_only_names_blocks_costs_no_more_than_a_small_write(void)
{
	EXPECT(frontrow_cost_bytes(2U << 30, false) == 64 << 10);
	EXPECT(frontrow_cost_bytes(4096, false) == 4096);
	EXPECT(frontrow_cost_bytes(2U << 30, true) == 2U << 30);
}

static void writeback_has_its_share_beside_a_busy_reader(void)
{
	const struct actor *reader, *writeback;
	u64 served;

	sim_init(&sim, &serial, 1);
	reader = sim_add(&sim, &(struct actor) {
		.kind = READ, .role = FRONTROW_FOREGROUND, .owner = 1, .depth = 4,
		.bytes = 128 << 10,
	});
	writeback = sim_add(&sim, &(struct actor) {
		.kind = ASYNC_WRITE, .by_kernel_thread = true, .owner = 2, .depth = 64,
		.bytes = 128 << 10,
	});
	sim_run(&sim, 30 * SECOND);
	EXPECT_SOUND(&sim);
	served = reader->done_bytes + writeback->done_bytes;
	EXPECT(writeback->done_bytes * 100 >= served * 5);
	EXPECT(writeback->done_bytes * 100 <= served * 20);
}

/* The foreground yields one share to the background, not one to each kind of its requests. */
static void the_backgrounds_requests_and_writeback_divide_one_share(void)
{
	const struct actor *foreground, *reader, *writeback;
	u64 served;

	sim_init(&sim, &serial, 1);
	foreground = sim_add(&sim, &(struct actor) {
		.kind = READ, .role = FRONTROW_FOREGROUND, .owner = 1, .depth = 4,
		.bytes = 128 << 10,
	});
	reader = sim_add(&sim, &(struct actor) {
		.kind = READ, .role = FRONTROW_BACKGROUND, .owner = 2, .depth = 4,
		.bytes = 128 << 10,
	});
	writeback = sim_add(&sim, &(struct actor) {
		.kind = ASYNC_WRITE, .role = FRONTROW_BACKGROUND, .by_kernel_thread = true,
		.owner = 3, .depth = 64, .bytes = 128 << 10,
	});
	sim_run(&sim, 30 * SECOND);
	EXPECT_SOUND(&sim);
	served = foreground->done_bytes + reader->done_bytes + writeback->done_bytes;
	EXPECT_NEAR((reader->done_bytes + writeback->done_bytes) * 100 / served,
		    DEFAULT_BACKGROUND_SHARE_PERCENT, 25);
	EXPECT_NEAR(reader->done_bytes * 100 / writeback->done_bytes, 100, 50);
}

/* Whoever has the idle class comes after all others, however many requests it has. */
static void without_names_the_idle_class_has_the_backgrounds_share(void)
{
	const struct actor *reader, *idle;

	sim_init(&sim, &serial, 1);
	reader = sim_add(&sim, &(struct actor) {
		.kind = READ, .owner = 1, .depth = 2, .bytes = 64 << 10,
	});
	idle = sim_add(&sim, &(struct actor) {
		.kind = SYNC_WRITE, .role = FRONTROW_BACKGROUND, .owner = 2, .depth = 64,
		.bytes = 64 << 10,
	});
	sim.core.has_roles = false;
	sim_run(&sim, 30 * SECOND);
	EXPECT_SOUND(&sim);
	EXPECT_NEAR(idle->done_bytes * 100 / (idle->done_bytes + reader->done_bytes),
		    DEFAULT_BACKGROUND_SHARE_PERCENT, 40);
}

/* The block layer begins no flush while data with a flush of their own have come. */
static void whoever_waits_for_a_flush_waits_for_no_share(void)
{
	struct frontrow_item held[2] = {}, reading = { .is_read = true, .is_sync = true };
	struct frontrow_item commit = { .role = FRONTROW_OTHER, .owner = 3, .is_sync = true };
	struct frontrow_view view;
	unsigned int i;

	sim_init(&sim, &serial, 1);
	reading.owner = 1;
	frontrow_identify(&sim.core, &reading, sim.now_ns);
	frontrow_insert(&sim.core, &reading, reading.own_class, false);
	frontrow_look(&sim.core, sim.now_ns, &view);
	EXPECT(frontrow_next(&sim.core, &view) == &reading);
	for (i = 0; i < 2; i++) {
		held[i] = (struct frontrow_item) {
			.role = FRONTROW_BACKGROUND, .owner = 2, .bytes = 4096, .is_write = true,
			.is_sync = true, .precedes_flush = i, .inserted_ns = sim.now_ns,
		};
		frontrow_identify(&sim.core, &held[i], sim.now_ns);
		frontrow_insert(&sim.core, &held[i], held[i].own_class, false);
	}
	frontrow_look(&sim.core, sim.now_ns, &view);
	EXPECT(!frontrow_next(&sim.core, &view));
	frontrow_flush_begins(&sim.core, &commit, sim.now_ns);
	frontrow_look(&sim.core, sim.now_ns, &view);
	EXPECT(frontrow_next(&sim.core, &view) == &held[1]);
	EXPECT(!frontrow_next(&sim.core, &view));
}

/* A service that syncs, and writeback, for which a task of @role waits throttled. */
static void run_throttled(enum frontrow_role role, u64 *percent)
{
	const struct actor *service, *writeback;

	sim_init(&sim, &serial, 1);
	service = sim_add(&sim, &(struct actor) {
		.kind = SYNC_WRITE, .owner = 1, .depth = 4, .bytes = 64 << 10,
	});
	writeback = sim_add(&sim, &(struct actor) {
		.kind = ASYNC_WRITE, .by_kernel_thread = true, .owner = 2, .depth = 64,
		.bytes = 64 << 10,
	});
	sim_add(&sim, &(struct actor) {
		.kind = DIRTY, .role = role, .owner = 3, .depth = 1, .bytes = 4096,
		.think_ns = 50 * MS,
	});
	/* Named, so that the service stays what it is. */
	sim.core.has_roles = true;
	sim_run(&sim, 10 * SECOND);
	EXPECT_SOUND(&sim);
	*percent = writeback->done_bytes * 100 / (service->done_bytes + writeback->done_bytes);
}

static void writeback_has_half_while_a_task_as_urgent_is_throttled(void)
{
	u64 percent = 0;

	run_throttled(FRONTROW_BACKGROUND, &percent);
	EXPECT_NEAR(percent, DEFAULT_ASYNC_SHARE_PERCENT, 20);
	/* The model's queue holds three, and writeback has one of them. */
	run_throttled(FRONTROW_OTHER, &percent);
	EXPECT_NEAR(percent, 33, 10);
}

static struct frontrow_item dispatched(struct frontrow_item item)
{
	static struct frontrow_item kept;
	struct frontrow_view view;

	kept = item;
	kept.inserted_ns = sim.now_ns;
	frontrow_identify(&sim.core, &kept, sim.now_ns);
	frontrow_insert(&sim.core, &kept, kept.own_class, false);
	frontrow_look(&sim.core, sim.now_ns, &view);
	frontrow_next(&sim.core, &view);
	sim.now_ns += 10 * MS;
	frontrow_complete(&sim.core, &kept, sim.now_ns);
	return kept;
}

/* What a task waits for after its sleep must not be held up by what it waited for in it. */
static void a_throttled_task_that_has_a_request_is_awake(void)
{
	struct frontrow_item read = { .is_read = true, .is_sync = true, .bytes = 4096, .owner = 3 };

	sim_init(&sim, &serial, 1);
	frontrow_throttled(&sim.core, FRONTROW_OTHER, read.owner, 4096, sim.now_ns);
	EXPECT(sim.core.throttled[FRONTROW_LEVEL_OTHER].until_ns > sim.now_ns);
	dispatched(read);
	EXPECT(sim.core.throttled[FRONTROW_LEVEL_OTHER].until_ns == 0);
}

/* A process that writes on and on is long, as one that reads on and on. */
static void a_process_uses_what_the_device_will_take_for_its_dirty_pages(void)
{
	const unsigned int owner = 3;
	u64 step_bytes, end_ns;

	sim_init(&sim, &serial, 1);
	/* What a device takes in 100 ms that has shown nothing yet. */
	step_bytes = INITIAL_REQUEST_BYTES * 100 * MS / INITIAL_REQUEST_NS;
	for (end_ns = sim.now_ns + 3 * SECOND; sim.now_ns < end_ns; sim.now_ns += 100 * MS)
		frontrow_throttled(&sim.core, FRONTROW_OTHER, owner, step_bytes, sim.now_ns);
	EXPECT(frontrow_level_of(&sim.core, FRONTROW_OTHER, false, owner, sim.now_ns) ==
	       FRONTROW_LEVEL_BULK);
	/* The pause begins when the last sleep ends at the latest. */
	sim.now_ns += THROTTLED_NS + BULK_NS / FORGIVEN + 1;
	EXPECT(frontrow_level_of(&sim.core, FRONTROW_OTHER, false, owner, sim.now_ns) ==
	       FRONTROW_LEVEL_OTHER);
}

static void whoever_waits_for_a_write_comes_before_the_rest_of_writeback(void)
{
	const struct actor *waiting;

	sim_init(&sim, &serial, 1);
	sim_add(&sim, &(struct actor) {
		.kind = ASYNC_WRITE, .by_kernel_thread = true, .owner = 2, .depth = 200,
		.bytes = 512 << 10, .file = 1,
	});
	sim_add(&sim, &(struct actor) {
		.kind = ASYNC_WRITE, .by_kernel_thread = true, .owner = 2, .depth = 2,
		.bytes = 4096, .file = 2, .think_ns = 100 * MS,
	});
	waiting = sim_add(&sim, &(struct actor) {
		.kind = FSYNC, .owner = 3, .depth = 1, .file = 2, .think_ns = 5 * MS,
	});
	sim_run(&sim, 30 * SECOND);
	EXPECT_SOUND(&sim);
	EXPECT(waiting->done > 100);
	/* Of 2 s that are queued. */
	EXPECT(waiting->longest_ns < 50 * MS);
}

static void the_foreground_waits_for_a_slice_of_the_backgrounds(void)
{
	const struct actor *foreground;

	sim_init(&sim, &parallel, 1);
	foreground = sim_add(&sim, &(struct actor) {
		.kind = READ, .role = FRONTROW_FOREGROUND, .owner = 1, .depth = 1, .bytes = 4096,
		.think_ns = 20 * MS, .from_ns = 5 * SECOND,
	});
	sim_add(&sim, &(struct actor) {
		.kind = SYNC_WRITE, .role = FRONTROW_BACKGROUND, .owner = 2, .depth = 128,
		.bytes = 64 << 10,
	});
	sim_run(&sim, 20 * SECOND);
	EXPECT_SOUND(&sim);
	EXPECT(foreground->done > 1000);
	EXPECT(foreground->longest_ns < 5 * MS);
}

static void asynchronous_requests_keep_their_order(void)
{
	struct frontrow_view view;
	struct frontrow_item items[4] = {}, *next;
	unsigned int i;

	sim_init(&sim, &serial, 1);
	for (i = 0; i < 4; i++) {
		items[i] = (struct frontrow_item) {
			.is_write = true, .bytes = 1 << (20 - 3 * i),
			.inserted_ns = sim.now_ns + i, .owner = i % 2,
		};
		frontrow_identify(&sim.core, &items[i], sim.now_ns);
		frontrow_insert(&sim.core, &items[i], items[i].own_class, false);
	}
	for (i = 0; i < 4; i++) {
		frontrow_look(&sim.core, sim.now_ns + 10, &view);
		next = frontrow_next(&sim.core, &view);
		EXPECT(next == &items[i]);
		frontrow_complete(&sim.core, next, sim.now_ns + 20 + i);
	}
}

static void a_merged_request_is_as_urgent_as_its_most_urgent_part(void)
{
	struct frontrow_item first = { .is_write = true, .bytes = 4096, .mapping = &sim };
	struct frontrow_item next = first;

	sim_init(&sim, &serial, 1);
	first.inserted_ns = sim.now_ns;
	next.inserted_ns = sim.now_ns + 1;
	next.role = FRONTROW_FOREGROUND;
	next.is_sync = true;
	frontrow_identify(&sim.core, &first, sim.now_ns);
	frontrow_identify(&sim.core, &next, sim.now_ns);
	frontrow_insert(&sim.core, &first, first.own_class, false);
	frontrow_insert(&sim.core, &next, next.own_class, false);
	frontrow_merge_into(&sim.core, &first, &next, next.class, sim.now_ns + 2);
	EXPECT(sim.core.nr_queued == 1 && sim.core.queued[FRONTROW_FG_WRITE] == 1);
	EXPECT(first.class == FRONTROW_FG_WRITE && first.role == FRONTROW_FOREGROUND);
	EXPECT(first.own_class == FRONTROW_FG_WRITE);
	EXPECT(first.level == FRONTROW_LEVEL_FOREGROUND && first.is_counted);
	EXPECT(next.state == FRONTROW_RQ_IDLE && !next.is_counted);
}

/* By number of requests, so that one waits for one turn of each other process. */
static void a_process_with_one_request_waits_for_one_of_each_other(void)
{
	const struct actor *light;

	sim_init(&sim, &serial, 1);
	sim_add(&sim, &(struct actor) {
		.kind = READ, .owner = 1, .depth = 64, .bytes = 4096,
	});
	light = sim_add(&sim, &(struct actor) {
		.kind = READ, .owner = 2, .depth = 1, .bytes = 4096, .think_ns = 10 * MS,
	});
	sim.core.has_roles = true;
	sim_run(&sim, 10 * SECOND);
	EXPECT_SOUND(&sim);
	EXPECT(light->done > 1000);
	EXPECT(light->longest_ns < 2 * MS);
}

/* By size as well. */
static void processes_have_equal_parts_whatever_the_size_of_their_requests(void)
{
	const struct actor *large, *small;

	sim_init(&sim, &serial, 1);
	large = sim_add(&sim, &(struct actor) {
		.kind = READ, .owner = 1, .depth = 8, .bytes = 1 << 20,
	});
	small = sim_add(&sim, &(struct actor) {
		.kind = READ, .owner = 2, .depth = 8, .bytes = 64 << 10,
	});
	sim.core.has_roles = true;
	sim_run(&sim, 10 * SECOND);
	EXPECT_SOUND(&sim);
	EXPECT_NEAR(small->done_bytes, large->done_bytes, 10);
}

static void add_writeback(u32 bytes, u64 until_ns)
{
	sim_add(&sim, &(struct actor) {
		.kind = ASYNC_WRITE, .by_kernel_thread = true, .owner = 2, .depth = 128,
		.bytes = bytes, .until_ns = until_ns,
	});
}

static void the_rate_of_writeback_and_the_requests_that_it_needs_are_learnt(void)
{
	/* What eight channels take of 128 KB requests. */
	double bytes_per_s = 8 * (128 << 10) / (80e-6 + (128 << 10) / (double)(200 << 20));

	sim_init(&sim, &parallel, 1);
	add_writeback(128 << 10, 0);
	sim_run(&sim, 5 * SECOND);
	EXPECT_SOUND(&sim);
	EXPECT_NEAR(sim.core.budget.bytes_per_s, bytes_per_s, 15);
	EXPECT(frontrow_async_limit(&sim.core) >= 8);
	/* 2.5 ms of that is more than the device's own limit. */
	EXPECT(sim.slice_bytes >= sim.core.most_bytes);
}

/* A worker runs each time that the policy is asked. */
static void while_nobody_waits_the_policy_is_not_asked_at_each_completion(void)
{
	const struct actor *writeback;

	sim_init(&sim, &parallel, 1);
	writeback = sim_add(&sim, &(struct actor) {
		.kind = ASYNC_WRITE, .by_kernel_thread = true, .owner = 2, .depth = 400,
		.bytes = 4096, .until_ns = sim.now_ns + 1,
	});
	sim_run(&sim, 1 * SECOND);
	EXPECT_SOUND(&sim);
	EXPECT(writeback->done == 400);
	EXPECT(sim.decisions < 400 + 400 / 4);
}

static void readers_do_not_change_the_rate_that_was_learnt(void)
{
	u64 alone;

	sim_init(&sim, &serial, 1);
	add_writeback(512 << 10, 0);
	sim_run(&sim, 3 * SECOND);
	alone = sim.core.budget.bytes_per_s;
	sim_add(&sim, &(struct actor) {
		.kind = READ, .role = FRONTROW_FOREGROUND, .owner = 1, .depth = 1,
		.bytes = 512 << 10, .think_ns = 8 * MS,
	});
	sim_run(&sim, 10 * SECOND);
	EXPECT_SOUND(&sim);
	EXPECT_NEAR(alone, 50 << 20, 10);
	EXPECT_NEAR(sim.core.budget.bytes_per_s, alone, 10);
}

/* A device that takes one request at a time has as large ones as its rate needs. */
static void a_serial_device_keeps_requests_that_its_rate_needs(void)
{
	static const struct device stick = {
		.depth = 1, .channels = 1, .command_ns = 4 * MS, .bytes_per_s = 100 << 20,
	};

	sim_init(&sim, &stick, 1);
	add_writeback(1 << 20, 0);
	sim_run(&sim, 10 * SECOND);
	EXPECT_SOUND(&sim);
	EXPECT(sim.core.slice_bytes >= 512 << 10);
}

/* A class that was empty has not saved up turns. */
static void discards_that_come_late_take_turns_with_writeback(void)
{
	const struct actor *writeback, *discards;

	sim_init(&sim, &serial, 1);
	add_writeback(128 << 10, 0);
	writeback = &sim.actors[0];
	discards = sim_add(&sim, &(struct actor) {
		.kind = DISCARD, .owner = 3, .depth = 32, .bytes = 1 << 20,
		.from_ns = 6 * SECOND,
	});
	sim_run(&sim, 10 * SECOND);
	EXPECT_SOUND(&sim);
	EXPECT(discards->done > 1000);
	/* 128 requests of its own, and as much of the others. */
	EXPECT(writeback->longest_ns < 2 * 128 * 3 * MS);
}

static void a_visible_app_has_its_share_beside_the_foreground(void)
{
	const struct actor *foreground, *visible;
	u64 all_bytes;

	sim_init(&sim, &serial, 1);
	foreground = sim_add(&sim, &(struct actor) {
		.kind = READ, .role = FRONTROW_FOREGROUND, .owner = 1, .depth = 4,
		.bytes = 128 << 10,
	});
	visible = sim_add(&sim, &(struct actor) {
		.kind = READ, .role = FRONTROW_VISIBLE, .owner = 2, .depth = 4,
		.bytes = 128 << 10,
	});
	sim.core.visible_share_percent[0] = 30;
	/* So that a second has its rate: 50 MB/s. */
	sim.core.budget.bytes_per_s = 50 << 20;
	sim_run(&sim, 10 * SECOND);
	EXPECT_SOUND(&sim);
	all_bytes = foreground->done_bytes + visible->done_bytes;
	EXPECT_NEAR(visible->done_bytes * 100 / all_bytes, 30, 15);
}

/* What the kernel does while several wait is divided among them, to the nanosecond. */
static void tasks_that_wait_pay_for_what_the_kernel_does_meanwhile(void)
{
	struct frontrow_wait waits[2] = {
		{ .owner = 1, .level = FRONTROW_LEVEL_OTHER, .is_fsync = true },
		{ .owner = 2, .level = FRONTROW_LEVEL_OTHER, .is_fsync = true },
	};
	const struct frontrow_item commit = {
		.is_write = true, .is_sync = true, .bytes = 4096, .owner = 3,
		.by_kernel = true, .by_kernel_thread = true,
	};

	sim_init(&sim, &serial, 1);
	frontrow_waiter_begins(&sim.core, &waits[0], sim.now_ns);
	EXPECT(dispatched(commit).class == FRONTROW_SYNC_WRITE);
	frontrow_waiter_begins(&sim.core, &waits[1], sim.now_ns);
	dispatched(commit);
	frontrow_waiter_ends(&sim.core, &waits[0], sim.now_ns);
	frontrow_waiter_ends(&sim.core, &waits[1], sim.now_ns);
	EXPECT(sim.core.processes[1].used_ns == 15 * MS);
	EXPECT(sim.core.processes[2].used_ns == 5 * MS);
	EXPECT(sim.core.processes[3].used_ns == 0);
}

/* As long as what a task waits for is here, nothing else is looked for in its place. */
static void nothing_is_searched_for_a_task_that_is_being_served(void)
{
	struct frontrow_item awaited = {
		.is_write = true, .bytes = 4096, .mapping = &sim, .own_class = FRONTROW_ASYNC,
	};
	struct frontrow_wait wait = { .owner = 1, .level = FRONTROW_LEVEL_OTHER };
	struct frontrow_view view;

	sim_init(&sim, &serial, 1);
	awaited.inserted_ns = sim.now_ns;
	frontrow_waiter_begins(&sim.core, &wait, sim.now_ns);
	frontrow_look(&sim.core, sim.now_ns + 50 * MS, &view);
	EXPECT(view.who == FRONTROW_LEVEL_OTHER && view.is_searching);
	frontrow_insert(&sim.core, &awaited, FRONTROW_BOOSTED, true);
	frontrow_look(&sim.core, sim.now_ns + 50 * MS, &view);
	EXPECT(view.who == FRONTROW_LEVEL_OTHER && !view.is_searching);
	EXPECT(frontrow_next(&sim.core, &view) == &awaited);
	frontrow_look(&sim.core, sim.now_ns + 90 * MS, &view);
	EXPECT(view.who == FRONTROW_LEVEL_OTHER && !view.is_searching);
}

#ifndef MIN_DECISIONS
#define MIN_DECISIONS 10000000
#endif

static u64 decisions;

/*
 * Longest that anybody waits. A closed class's share grows to all of the device
 * by the time that its oldest request is AGE_RAMP_END_NS old; then each request
 * here may go before it once, and as many that come meanwhile.
 */
static u64 bound_ns(const struct sim *sim)
{
	const struct device *device = &sim->device;
	u64 slowest_ns = device->command_ns + (1ULL << 20) * NSEC_PER_SEC / device->bytes_per_s;
	unsigned int here = 0, i;

	for (i = 0; i < sim->nr_actors; i++)
		here += sim->actors[i].depth;
	if (device->stall_every)
		slowest_ns += device->stall_ns / device->stall_every * 2 + device->stall_ns / here;
	return AGE_RAMP_END_NS + 4 * here * slowest_ns;
}

static void add_any(void)
{
	static const enum frontrow_role roles[] = {
		FRONTROW_OTHER, FRONTROW_OTHER, FRONTROW_FOREGROUND, FRONTROW_BACKGROUND,
		FRONTROW_VISIBLE, FRONTROW_VISIBLE + 1, FRONTROW_VISIBLE + 2,
	};
	/* Without names the idle class is the background. */
	static const enum frontrow_role unnamed[] = {
		FRONTROW_OTHER, FRONTROW_OTHER, FRONTROW_OTHER, FRONTROW_BACKGROUND,
	};
	bool are_named = sim_below(&sim, 2);
	unsigned int nr = 1 + sim_below(&sim, 8);

	while (nr--)
		sim_add(&sim, &(struct actor) {
			.kind = sim_below(&sim, NR_KINDS),
			.role = are_named ? roles[sim_below(&sim, ARRAY_SIZE(roles))] :
					    unnamed[sim_below(&sim, ARRAY_SIZE(unnamed))],
			.owner = sim_below(&sim, 20),
			.by_kernel_thread = !sim_below(&sim, 4),
			.depth = 1 + sim_below(&sim, sim_below(&sim, 2) ? 2 : 40),
			.bytes = 4096 << sim_below(&sim, 8),
			.think_ns = sim_below(&sim, 2) ? 0 : sim_below(&sim, 50 * MS),
			.file = sim_below(&sim, 4),
			.from_ns = sim_below(&sim, 2 * SECOND),
			.until_ns = sim_below(&sim, 2) ? 0 : sim_below(&sim, 10 * SECOND),
		});
	sim.core.has_roles = are_named;
}

static void nobody_starves_and_nothing_is_lost_whatever_comes(void)
{
	static const struct device *const devices[] = { &serial, &parallel, &slow, &stalling };
	unsigned int seed, i;

	for (seed = 1; decisions < MIN_DECISIONS; seed++) {
		sim_init(&sim, devices[seed % ARRAY_SIZE(devices)], seed);
		add_any();
		/* Short ones, and now and then one in which shares have grown to all. */
		sim_run(&sim, (seed % 4 ? 2 : 12) * SECOND);
		if (sim.broken)
			fprintf(stderr, "seed %u: ", seed);
		EXPECT_SOUND(&sim);
		for (i = 0; i < sim.nr_actors; i++) {
			if (sim.actors[i].longest_ns > bound_ns(&sim))
				fprintf(stderr, "seed %u, actor %u (kind %d, role %d): %llu ms of %llu\n",
					seed, i, sim.actors[i].kind, sim.actors[i].role,
					(unsigned long long)sim.actors[i].longest_ns / MS,
					(unsigned long long)bound_ns(&sim) / MS);
			EXPECT(sim.actors[i].longest_ns <= bound_ns(&sim));
		}
		decisions += sim.decisions;
	}
	printf("       %llu decisions in %u runs\n", (unsigned long long)decisions, seed - 1);
}

static unsigned int place_of(enum frontrow_class class)
{
	unsigned int place = 0;

	while (place < FRONTROW_NR_IN_ORDER && frontrow_in_order[place] != class)
		place++;
	return place;
}

/* Promotions and merges compare classes: what opens and orders them has to agree. */
static void classes_are_in_the_order_of_their_urgency(void)
{
	enum frontrow_class class;

	for (class = 1; class < FRONTROW_NR_CLASSES; class++) {
		const struct frontrow_class_rules *rules = &frontrow_classes[class];

		EXPECT(rules[-1].open_to >= rules->open_to);
		if (rules[-1].open_to == rules->open_to)
			EXPECT(place_of(class - 1) <= place_of(class));
	}
}

static const struct test tests[] = {
	TEST(classes_are_in_the_order_of_their_urgency),
	TEST(a_sync_write_is_served_beside_any_number_of_readers),
	TEST(a_service_reads_beside_a_foreground_that_syncs),
	TEST(a_reader_of_the_background_does_not_starve_writeback),
	TEST(the_foregrounds_writeback_does_not_starve_beside_a_service_that_syncs),
	TEST(the_background_pays_for_the_stalls_that_it_causes),
	TEST(what_only_names_blocks_costs_no_more_than_a_small_write),
	TEST(writeback_has_its_share_beside_a_busy_reader),
	TEST(the_backgrounds_requests_and_writeback_divide_one_share),
	TEST(without_names_the_idle_class_has_the_backgrounds_share),
	TEST(whoever_waits_for_a_flush_waits_for_no_share),
	TEST(writeback_has_half_while_a_task_as_urgent_is_throttled),
	TEST(a_throttled_task_that_has_a_request_is_awake),
	TEST(a_process_uses_what_the_device_will_take_for_its_dirty_pages),
	TEST(whoever_waits_for_a_write_comes_before_the_rest_of_writeback),
	TEST(the_foreground_waits_for_a_slice_of_the_backgrounds),
	TEST(asynchronous_requests_keep_their_order),
	TEST(a_merged_request_is_as_urgent_as_its_most_urgent_part),
	TEST(a_process_with_one_request_waits_for_one_of_each_other),
	TEST(processes_have_equal_parts_whatever_the_size_of_their_requests),
	TEST(the_rate_of_writeback_and_the_requests_that_it_needs_are_learnt),
	TEST(while_nobody_waits_the_policy_is_not_asked_at_each_completion),
	TEST(readers_do_not_change_the_rate_that_was_learnt),
	TEST(a_serial_device_keeps_requests_that_its_rate_needs),
	TEST(discards_that_come_late_take_turns_with_writeback),
	TEST(a_visible_app_has_its_share_beside_the_foreground),
	TEST(tasks_that_wait_pay_for_what_the_kernel_does_meanwhile),
	TEST(nothing_is_searched_for_a_task_that_is_being_served),
	TEST(nobody_starves_and_nothing_is_lost_whatever_comes),
	{ NULL, NULL },
};

static void nothing(void)
{
}

int main(int arguments, char **argument)
{
	const struct test *const suites[] = { tests };

	return check_run(arguments, argument, suites, 1, nothing, nothing);
}
