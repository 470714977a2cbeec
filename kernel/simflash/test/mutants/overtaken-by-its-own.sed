# command.c: a command passes a held write of the same pages.
s/^		if (!as_it_was \&\& !independent(cmd, each))$/		if (0 \&\& as_it_was)/
