# store.c: a checkpoint knows the first stream's open block only.
s/^		return die->open\[index\].block;$/		return die->open[0].block;/
