# A FLUSH does not wait for the rows that are under program.
s/if (cache->oldest \&\& cache->oldest->number <= cmd->flush_row)/if (0)/
