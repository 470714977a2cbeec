// SPDX-License-Identifier: GPL-2.0-only
/*
 * The command stream: all that the core was given, in order and with its times.
 *
 * The core is a function of that, so a host build of it that is given the same
 * does the same, operation for operation (crates/powercut). With stream_mib the
 * device writes it down in memory from its first command on, until somebody opens
 * the file `stream` in debugfs, which has it. Whatever is written to `mark` beside
 * it becomes a record of its own: what the host knew of its files at that time.
 *
 *	stream = "FRSTREAM" · le32 version · le32 n · n × le64 configuration (ftl/parameters.h) · record*
 *	record = u8 kind · u8 flags · le16 stream · le32 lba · le32 count · le64 time · body
 *
 *	kind		count		body
 *	FTL_READ, FTL_FLUSH, FTL_DISCARD, and commands without ranges
 *			pages		none
 *	FTL_WRITE	pages		page*
 *	FTL_REMAP, FTL_SPREAD, FTL_ARM
 *			ranges		(le32 src · le32 dst · le32 pages)*
 *	STREAM_MARK	bytes		these
 *	STREAM_END	numbers		le64 statistics*, le32 CRC-32 of all before
 *
 *	page = u8 0 · le64 the word that it repeats
 *	     | u8 1 · le64 which of its 64 parts are not zeros · le64[8] each of these
 *
 * The stream is that of a write. The flags are 1 for FUA, and in STREAM_END 1 if memory ran out, so that the end
 * is missing. Metadata are mostly zeros, the workloads' data mostly one word.
 */
#include <linux/blkdev.h>
#include <linux/crc32.h>
#include <linux/debugfs.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "simflash.h"

#define STREAM_VERSION 4

enum { STREAM_MARK = 0x80, STREAM_END = 0xff };
enum { STREAM_FUA = 1, STREAM_FULL = 1 };

#define PART_WORDS 8
#define PARTS (FTL_PAGE_BYTES / (PART_WORDS * sizeof(u64)))

#define MARK_MAX_BYTES SZ_4M

struct simflash_stream {
	u8 *bytes;
	size_t length, size;
	bool full;			/* a command found no room: nothing is added any more */
	bool ended;
};

struct stream_record {
	u8 kind, flags;
	__le16 stream;			/* of a write */
	__le32 lba, count;
	__le64 now_ns;
} __packed;

/* The end always finds room. */
#define END_NUMBERS 15
#define END_BYTES (sizeof(struct stream_record) + END_NUMBERS * sizeof(u64) + sizeof(u32))

static void stream_put(struct simflash_stream *stream, const void *bytes, size_t length)
{
	if (stream->full || stream->ended || length > stream->size - stream->length) {
		stream->full = true;
		return;
	}
	memcpy(stream->bytes + stream->length, bytes, length);
	stream->length += length;
}

static void stream_put_word(struct simflash_stream *stream, u64 word)
{
	__le64 put = cpu_to_le64(word);

	stream_put(stream, &put, sizeof(put));
}

static u64 stream_parts(const u64 *word)
{
	u64 parts = 0;
	u32 i;

	for (i = 0; i < PARTS * PART_WORDS; i++)
		parts |= (u64)!!word[i] << i / PART_WORDS;
	return parts;
}

static void stream_put_page(struct simflash_stream *stream, const struct ftl_content *content)
{
	const u64 *word = (const u64 *)(uintptr_t)content->word;
	u8 form = content->buffer;
	u64 parts;
	u32 i;

	stream_put(stream, &form, sizeof(form));
	if (!content->buffer) {
		stream_put_word(stream, content->word);
		return;
	}
	parts = stream_parts(word);
	stream_put_word(stream, parts);
	for (i = 0; i < PARTS * PART_WORDS; i++) {
		if (parts >> i / PART_WORDS & 1)
			stream_put_word(stream, word[i]);
	}
}

static void stream_put_range(struct simflash_stream *stream, const struct ftl_range *range)
{
	__le32 put[3] = {
		cpu_to_le32(range->src), cpu_to_le32(range->dst), cpu_to_le32(range->pages),
	};

	stream_put(stream, put, sizeof(put));
}

static void stream_put_record(struct simflash_stream *stream, u8 kind, u8 flags, u16 of, u32 lba,
			      u32 count, u64 now_ns)
{
	struct stream_record record = {
		.kind = kind,
		.flags = flags,
		.stream = cpu_to_le16(of),
		.lba = cpu_to_le32(lba),
		.count = cpu_to_le32(count),
		.now_ns = cpu_to_le64(now_ns),
	};

	stream_put(stream, &record, sizeof(record));
}

void simflash_stream_command(struct simflash_stream *stream, const struct ftl_cmd *cmd, u64 now_ns)
{
	size_t begin;
	u32 i;

	if (!stream || stream->full || stream->ended)
		return;
	begin = stream->length;
	stream_put_record(stream, cmd->op, cmd->fua ? STREAM_FUA : 0, cmd->stream, cmd->lba,
			  cmd->op < FTL_OPS ? cmd->pages : cmd->ranges, now_ns);
	for (i = 0; cmd->op == FTL_WRITE && i < cmd->pages; i++)
		stream_put_page(stream, &cmd->page[i].content);
	for (i = 0; cmd->op >= FTL_OPS && i < cmd->ranges; i++)
		stream_put_range(stream, &cmd->range[i]);
	if (stream->full)
		stream->length = begin;
}

/* What the host has to make its device of. */
static void stream_put_config(struct simflash_stream *stream, const struct ftl_config *config)
{
	const __le32 head[2] = { cpu_to_le32(STREAM_VERSION), cpu_to_le32(ftl_parameters()) };
	u32 i;

	stream_put(stream, "FRSTREAM", 8);
	stream_put(stream, head, sizeof(head));
	for (i = 0; i < ftl_parameters(); i++)
		stream_put_word(stream, ftl_config_number(config, i));
}

/* NULL for none, or if memory is short. */
struct simflash_stream *simflash_stream_create(const struct ftl_config *config, u32 mib)
{
	struct simflash_stream *stream = mib ? kzalloc(sizeof(*stream), GFP_KERNEL) : NULL;

	if (!stream)
		return NULL;
	stream->size = (size_t)mib * SZ_1M;
	stream->bytes = vmalloc(stream->size + END_BYTES);
	if (!stream->bytes) {
		kfree(stream);
		return NULL;
	}
	stream_put_config(stream, config);
	return stream;
}

void simflash_stream_destroy(struct simflash_stream *stream)
{
	if (stream)
		vfree(stream->bytes);
	kfree(stream);
}

/* The core's statistics, by which a host knows that it did the same. The lock is held. */
void simflash_stream_end(struct simflash_stream *stream, const struct ftl_stats *stats, u64 now_ns)
{
	const u64 number[END_NUMBERS] = {
		stats->row_reads, stats->row_programs, stats->page_programs, stats->padded_pages,
		stats->erases, stats->collect_row_programs, stats->collect_page_programs,
		stats->log_row_programs, stats->log_page_programs, stats->log_erases,
		stats->elided_pages, stats->spread_pages, stats->map_row_programs,
		stats->map_page_programs, stats->folded_pages,
	};
	u8 flags = stream->full ? STREAM_FULL : 0;
	u32 i;

	stream->full = false;
	stream->size += END_BYTES;
	stream_put_record(stream, STREAM_END, flags, 0, 0, END_NUMBERS, now_ns);
	for (i = 0; i < END_NUMBERS; i++)
		stream_put_word(stream, number[i]);
	stream->ended = true;
}

static int stream_finish(struct simflash *dev)
{
	struct simflash_stream *stream = dev->stream;
	struct ftl_stats *stats;
	__le32 crc;

	if (stream->ended)
		return 0;
	stats = kzalloc(sizeof(*stats), GFP_KERNEL);
	if (!stats)
		return -ENOMEM;
	simflash_end_stream(dev, stats);
	kfree(stats);
	/* Nobody adds anything any more, so this needs no lock. */
	crc = cpu_to_le32(~crc32_le(~0, stream->bytes, stream->length));
	memcpy(stream->bytes + stream->length, &crc, sizeof(crc));
	stream->length += sizeof(crc);
	return 0;
}

static int stream_file_open(struct inode *inode, struct file *file)
{
	struct simflash *dev = inode->i_private;
	int error;

	mutex_lock(&dev->control);
	error = stream_finish(dev);
	mutex_unlock(&dev->control);
	file->private_data = dev->stream;
	return error;
}

static ssize_t stream_file_read(struct file *file, char __user *to, size_t count, loff_t *at)
{
	const struct simflash_stream *stream = file->private_data;

	return simple_read_from_buffer(to, count, at, stream->bytes, stream->length);
}

static const struct file_operations stream_file_ops = {
	.owner	= THIS_MODULE,
	.open	= stream_file_open,
	.read	= stream_file_read,
	.llseek	= default_llseek,
};

/* One record for each write(). */
static ssize_t mark_file_write(struct file *file, const char __user *from, size_t count, loff_t *at)
{
	struct simflash *dev = file->private_data;
	struct simflash_stream *stream = dev->stream;
	bool put;
	void *bytes;

	if (count > MARK_MAX_BYTES)
		return -E2BIG;
	bytes = vmemdup_user(from, count);
	if (IS_ERR(bytes))
		return PTR_ERR(bytes);
	spin_lock_irq(&dev->lock);
	put = !stream->ended && !stream->full &&
	      stream->size - stream->length >= sizeof(struct stream_record) + count;
	if (put) {
		stream_put_record(stream, STREAM_MARK, 0, 0, 0, count, ktime_get_ns());
		stream_put(stream, bytes, count);
	}
	spin_unlock_irq(&dev->lock);
	kvfree(bytes);
	return put ? count : -ENOSPC;
}

static const struct file_operations mark_file_ops = {
	.owner	= THIS_MODULE,
	.open	= simple_open,
	.write	= mark_file_write,
};

void simflash_stream_add(struct simflash *dev)
{
	if (!dev->stream)
		return;
	debugfs_create_file("stream", 0400, dev->debugfs, dev, &stream_file_ops);
	debugfs_create_file("mark", 0200, dev->debugfs, dev, &mark_file_ops);
}
