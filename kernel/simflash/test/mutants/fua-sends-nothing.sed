# cache.c: a FUA write leaves the row that it shares staged.
s/if (has_page_of(&ftl->cache, ftl->cache.staged\[stream\], fua))/if (0 \&\& has_page_of(\&ftl->cache, ftl->cache.staged[stream], fua))/
