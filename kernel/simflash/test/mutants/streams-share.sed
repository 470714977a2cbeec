# store.c: all streams write to one block.
s/struct ftl_die \*die = next_die(ftl, stream, stream);/struct ftl_die *die = next_die(ftl, stream = 0, 0);/
