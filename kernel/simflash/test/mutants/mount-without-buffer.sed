# A mount does not look into the write buffer.
/recovery->scanned\[die\]++;/a\
		if (ftl_store_is_buffer(ftl, i * ftl->config.block_pages))\
			continue;
