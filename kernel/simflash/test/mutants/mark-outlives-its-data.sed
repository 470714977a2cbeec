# hints.c: a mark stays when its data is overwritten.
/^	hints->marks--;$/d
