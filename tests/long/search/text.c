// SPDX-License-Identifier: GPL-2.0
/*
 * Inputs as text: a line for each step, and comments
 */
#include <string.h>

#include "search.h"

#define FORMAT	"%hu times dq %hhu dx %hhu batch %hhu %19s q %hhu child %hhu x %hhu y %hhu n %u cmd %hhu type %hhu event %i flags %i"

const char *const source_names[NR_SOURCES] = {
	"socket", "pipe", "poll", "nested", "inode", "timer", "posix_timer",
	"signal", "proc", "futex", "user", "mixed",
};

const char *const metric_names[NR_METRICS] = {
	"stretch", "init", "add", "modify", "remove", "ready", "get", "wait",
	"commit", "close", "bytes",
};

static const char *const step_names[] = {
	"sleep", "epoll", "drop", "close_queue", "nest", "fifo", "same",
};

static const char *step_name(unsigned int code)
{
	return code < NR_OPS ? op_name(code) : step_names[code - NR_OPS];
}

void print_input(FILE *to, const struct input *in)
{
	const struct step *s;
	unsigned int i;

	for (i = 0; i < in->nr; i++) {
		s = &in->step[i];
		fprintf(to, "%u times dq %u dx %u batch %u %s q %u child %u x %u y %u n %u cmd %u type %u event %#x flags %#x\n",
			s->times, s->dq, s->dx, s->batch, step_name(s->op.code),
			s->op.q, s->op.child, s->op.x, s->op.y, s->op.n,
			s->op.cmd, s->op.type, s->op.event, s->op.flags);
	}
}

static bool find_code(const char *name, uint8_t *code)
{
	for (*code = 0; *code < NR_STEPS; ++*code)
		if (!strcmp(step_name(*code), name))
			return true;
	return false;
}

static bool read_step(const char *line, struct step *s)
{
	char name[20];

	*s = (struct step){};
	return sscanf(line, FORMAT, &s->times, &s->dq, &s->dx, &s->batch, name,
		      &s->op.q, &s->op.child, &s->op.x, &s->op.y, &s->op.n,
		      &s->op.cmd, &s->op.type, (int *)&s->op.event,
		      (int *)&s->op.flags) == 14 &&
	       find_code(name, &s->op.code) && s->times <= MAX_TIMES;
}

bool read_input(FILE *from, struct input *in)
{
	char line[300];

	in->nr = 0;
	while (fgets(line, sizeof(line), from)) {
		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (in->nr == MAX_STEPS ||
		    !read_step(line, &in->step[in->nr++])) {
			fprintf(stderr, "kevent-search: no step: %s", line);
			return false;
		}
	}
	return in->nr > 0;
}
