# cache.c: a stream without a row waits for one, though another stream's has room.
s/^	if (ftl->cache.staged\[stream\] || ftl->free_rows)$/	if (1)/
