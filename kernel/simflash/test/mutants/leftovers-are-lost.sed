# cache.c: what is left of a stream is not joined, nor sent off.
s/^		into->slot\[into->pages++\] = row->slot\[i\];$/		into->pages += 0;/
