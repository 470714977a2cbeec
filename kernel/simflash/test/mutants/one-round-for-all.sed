# store.c: streams take turns at the dies.
s/ftl->next_die\[round\]/ftl->next_die[0 * round]/g
