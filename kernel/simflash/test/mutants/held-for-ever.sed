# command.c: a write is held though no space will come.
s/rows_of(ftl, cmd) &&$/rows_of(ftl, cmd);/
/^	       ftl_collect_is_at_work(ftl);$/d
