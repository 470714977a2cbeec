# command.c: rows stay promised to writes that have ended.
s/ftl->promised_rows -= rows_of/ftl->promised_rows -= 0 * rows_of/
