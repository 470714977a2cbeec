# A FLUSH ends when its data is in flash, and the map is not.
s/if (cmd->op == FTL_FLUSH \&\& !ftl_mapcache_flush(ftl, cmd))/if (0)/
