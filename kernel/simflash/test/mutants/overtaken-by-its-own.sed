# command.c: a command passes a held write of the same pages.
s/^		if (!independent(cmd, each))$/		if (0)/
