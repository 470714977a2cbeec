# gc.c: marked blocks are not collected even if somebody waits for space.
s/return ftl_hints_avoid(ftl) && !hurries(ftl, die) &&/return ftl_hints_avoid(ftl) \&\& die \&\&/
