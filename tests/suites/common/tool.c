// SPDX-License-Identifier: GPL-2.0
/*
 * Programs that look at queues, as tests run them
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <grp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mount.h>

#include "helpers.h"
#include "tool.h"

static int exec_tool(void *arg)
{
	struct tool *t = arg;
	const char *argv[MAX_ARGS + 1] = { t->name };

	memcpy(argv + 1, t->args, sizeof(t->args));
	if (dup2(t->out, STDOUT_FILENO) < 0 || dup2(t->out, STDERR_FILENO) < 0)
		return 126;
	if (t->before && t->before())
		return 125;
	execv(example(t->name), (char **)argv);
	return 127;
}

void start_tool(struct tool *t)
{
	int out[2];

	MUST_EQ(pipe2(out, O_CLOEXEC), 0);
	t->out = out[1];
	t->pid = start_child(exec_tool, t);
	close(out[1]);
	t->out = out[0];
}

void end_tool(struct tool *t)
{
	size_t len = 0;
	ssize_t ret;

	while (len < sizeof(t->said) - 1 &&
	       (ret = read(t->out, t->said + len,
			   sizeof(t->said) - 1 - len)) > 0)
		len += ret;
	t->said[len] = 0;
	close(t->out);
	t->status = join_child(t->pid, PATIENCE_MS);
	MUST(t->status != 127);
}

void run_tool(struct tool *t)
{
	start_tool(t);
	end_tool(t);
}

unsigned int said_lines(const struct tool *t, const char *pattern)
{
	char *copy = strdup(t->said), *rest = copy, *line;
	unsigned int nr = 0;

	while ((line = strsep(&rest, "\n")))
		nr += fnmatch(pattern, line, 0) == 0;
	free(copy);
	return nr;
}

static void check_lines(const struct tool *t, bool want, const char *fmt,
			va_list ap)
{
	char pattern[512];

	vsnprintf(pattern, sizeof(pattern), fmt, ap);
	if (!CHECK(!said_lines(t, pattern) == !want))
		note("%s line \"%s\" in:\n%s", want ? "no" : "a", pattern,
		     t->said);
}

void check_said(const struct tool *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	check_lines(t, true, fmt, ap);
	va_end(ap);
}

void check_unsaid(const struct tool *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	check_lines(t, false, fmt, ap);
	va_end(ap);
}

int become_nobody(void)
{
	return setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	       setresuid(NOBODY, NOBODY, NOBODY);
}

int hide_kevent(void)
{
	return unshare(CLONE_NEWNS) ||
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	       mount("none", "/proc/sys/kernel", "tmpfs", 0, NULL) ||
	       (on_module() && mount("none", "/dev", "tmpfs", 0, NULL));
}

int fill_output(void)
{
	return dup2(open("/dev/full", O_WRONLY | O_CLOEXEC), STDOUT_FILENO) < 0;
}

/* JSON. Each function moves *at past what it knows, or returns false. */

static void skip_space(const char **at)
{
	*at += strspn(*at, " \t\r\n");
}

static bool take_word(const char **at, const char *word)
{
	skip_space(at);
	if (strncmp(*at, word, strlen(word)))
		return false;
	*at += strlen(word);
	return true;
}

static bool take_string(const char **at)
{
	if (!take_word(at, "\""))
		return false;
	for (; **at != '"'; ++*at) {
		if ((unsigned char)**at < ' ' || (unsigned char)**at > '~')
			return false;
		if (**at != '\\')
			continue;
		++*at;
		if (**at == 'u' && strspn(*at + 1, "0123456789abcdef") >= 4)
			*at += 4;
		else if (**at != '"' && **at != '\\')
			return false;
	}
	++*at;
	return true;
}

static bool take_number(const char **at)
{
	size_t digits = strspn(*at, "0123456789");

	*at += digits;
	if (!digits || ((*at)[-digits] == '0' && digits > 1))
		return false;
	if (!take_word(at, "."))
		return true;
	digits = strspn(*at, "0123456789");
	*at += digits;
	return digits;
}

static bool take_value(const char **at);

static bool take_list(const char **at, bool keys, const char *end)
{
	if (take_word(at, end))
		return true;
	do {
		if (keys && !(take_string(at) && take_word(at, ":")))
			return false;
		if (!take_value(at))
			return false;
	} while (take_word(at, ","));
	return take_word(at, end);
}

static bool take_value(const char **at)
{
	skip_space(at);
	if (isdigit((unsigned char)**at))
		return take_number(at);
	if (**at == '"')
		return take_string(at);
	if (take_word(at, "{"))
		return take_list(at, true, "}");
	return take_word(at, "[") && take_list(at, false, "]");
}

bool is_json(const char *text)
{
	if (!take_value(&text))
		return false;
	skip_space(&text);
	return !*text;
}
