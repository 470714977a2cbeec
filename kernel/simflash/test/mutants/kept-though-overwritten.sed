# readcache.c: a page stays in RAM when its data change.
s/^	if (is_kept(ftl, lba))$/	if (0 \&\& is_kept(ftl, lba))/
