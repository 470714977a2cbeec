# hints.c: an announcement has no end.
s/if (ftl->now_ns >= ftl->hints.reserved_until_ns)/if (!ftl->hints.reserved_until_ns)/
