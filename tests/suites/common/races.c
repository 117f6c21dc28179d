// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helpers.h"
#include "races.h"

#define DELAY		"/sys/kernel/debug/kevent/delay"
#define TAINTED		"/proc/sys/kernel/tainted"
#define WINDOWS		64
#define LONGEST_US	1000		/* where a task holds locks */

static bool has_word(const char *words, const char *word)
{
	size_t len = strlen(word);
	const char *at = words;

	while ((at = strstr(at, word))) {
		if ((at == words || at[-1] == ' ') &&
		    (!at[len] || at[len] == ' '))
			return true;
		at += len;
	}
	return false;
}

bool race_kind(const char *name)
{
	const char *given = getenv("KEVENT_RACES");
	char not[64];

	if (!given || !*given)
		return true;
	snprintf(not, sizeof(not), "-%s", name);
	if (has_word(given, not))
		return false;
	return given[0] == '-' || has_word(given, name);
}

/* The kernel ends all delays when this is closed, so also when the test has died. */
static int delays = -1;

static bool set_delay(const char *line)
{
	return write(delays, line, strlen(line)) == (ssize_t)strlen(line);
}

static void delay_in(const char *name, unsigned int permille, unsigned int us)
{
	char line[64];

	snprintf(line, sizeof(line), "%s %u %u", name, permille, us);
	if (set_delay(line))
		return;
	/* A task holds locks there. */
	snprintf(line, sizeof(line), "%s %u %u", name, permille,
		 us % LONGEST_US);
	MUST(set_delay(line));
}

static void delay_as_requested(const char *words)
{
	unsigned int permille, us;
	char name[32];
	int len;

	while (sscanf(words, " %31[^:]:%u:%u%n", name, &permille, &us, &len) == 3) {
		delay_in(name, permille, us);
		words += len;
	}
	MUST(!words[strspn(words, " ")]);
}

/* How many tasks were delayed in each window so far */
static struct {
	char		name[32];
	unsigned long	nr;
} delayed[WINDOWS];

static void count_delayed(void)
{
	char text[WINDOWS * 64], *line;
	unsigned int i = 0, nr;

	read_file(DELAY, text, sizeof(text));
	for (line = strtok(text, "\n"); line && i < WINDOWS;
	     line = strtok(NULL, "\n"), i++)
		if (sscanf(line, "%31s %*u %*u %u", delayed[i].name, &nr) == 2)
			delayed[i].nr += nr;
}

void delay_no_more(void)
{
	if (delays < 0)
		return;
	count_delayed();
	close(delays);
	delays = -1;
}

void say_delays(void)
{
	char text[WINDOWS * 64] = "";
	unsigned int i, len = 0;

	for (i = 0; i < WINDOWS; i++)
		if (delayed[i].nr)
			len += snprintf(text + len, sizeof(text) - len, " %s %lu",
					delayed[i].name, delayed[i].nr);
	if (len)
		note("delayed:%s", text);
}

void delay_at_random(uint64_t *rnd)
{
	static const struct {
		unsigned int permille, us;
	} delays_of[] = {
		{ 1000, 200 }, { 300, 1000 }, { 100, 3000 }, { 10, 20000 },
	};
	const char *given = getenv("KEVENT_RACES_DELAYS");
	char text[WINDOWS * 64], *line;
	unsigned int i;

	delay_no_more();
	delays = open(DELAY, O_WRONLY | O_CLOEXEC);
	if (delays < 0)
		return;
	if (given) {
		delay_as_requested(given);
		return;
	}
	/* Often none, so that the kernel is as fast as without windows. */
	if (next_random(rnd) % 2)
		return;
	read_file(DELAY, text, sizeof(text));
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		line[strcspn(line, " ")] = '\0';
		i = next_random(rnd) % ARRAY_SIZE(delays_of);
		if (next_random(rnd) % 8 == 0)
			delay_in(line, delays_of[i].permille, delays_of[i].us);
	}
}

bool kernel_complains(void)
{
	static char before[32];
	char now[32];

	read_file(TAINTED, now, sizeof(now));
	if (!*before)
		strcpy(before, now);
	return strcmp(before, now);
}
