# A page of the map that changes while it is written counts as written.
s/page->again = true;/;/
