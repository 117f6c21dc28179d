/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Programs that look at queues, as tests run them
 */
#ifndef TOOL_H
#define TOOL_H

#include <stdbool.h>
#include <sys/types.h>

#define MAX_ARGS	8

/**
 * struct tool - a program that runs, or has run
 * @name: its name
 * @args: its arguments, up to NULL
 * @before: called in its process, before it is executed; NULL: nothing
 * @pid: its process, while it runs
 * @out: what it writes comes from here
 * @status: its exit status
 * @said: what it has written to standard output and standard error
 */
struct tool {
	const char	*name;
	const char	*args[MAX_ARGS];
	int		(*before)(void);
	pid_t		pid;
	int		out;
	int		status;
	char		said[1 << 16];
};

void start_tool(struct tool *t);
/* Reads what it writes until it ends, and its status. */
void end_tool(struct tool *t);
void run_tool(struct tool *t);

/* How many lines of what it said match a pattern of the shell? */
unsigned int said_lines(const struct tool *t, const char *pattern);
/* One line at least does. */
void check_said(const struct tool *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* No line does. */
void check_unsaid(const struct tool *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* For @before: it has no rights, and another user; there is no kevent; standard output is full. */
int become_nobody(void);
int hide_kevent(void);
int fill_output(void);

/* Is it one value of JSON, and nothing else? */
bool is_json(const char *text);

#endif /* TOOL_H */
