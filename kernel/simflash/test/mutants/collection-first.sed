# die.c: collection goes in order of arrival, whoever waits.
s/return die->front_programs || program->arrival/return program->arrival/
