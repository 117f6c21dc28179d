// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "ktap.h"

static unsigned int passed, failed, exceptions, left_out;

void ktap_plan(unsigned int nr)
{
	printf("KTAP version 1\n1..%u\n", nr);
	fflush(stdout);
}

void ktap_begin(const char *suite, const char *name)
{
	printf("# run %s.%s\n", suite, name);
	fflush(stdout);
}

static void print_lines(const char *diagnostics)
{
	while (*diagnostics) {
		size_t len = strcspn(diagnostics, "\n");

		printf("# %.*s\n", (int)len, diagnostics);
		diagnostics += len + (diagnostics[len] == '\n');
	}
}

void ktap_result(bool ok, const char *suite, const char *name,
		 const char *diagnostics)
{
	print_lines(diagnostics);
	if (ok)
		passed++;
	else
		failed++;
	printf("%s %u %s.%s\n", ok ? "ok" : "not ok", passed + failed + exceptions, suite,
	       name);
	fflush(stdout);
}

void ktap_exception(const char *suite, const char *name, const char *why,
		    const char *diagnostics)
{
	print_lines(diagnostics);
	exceptions++;
	printf("ok %u %s.%s # XFAIL %s\n", passed + failed + exceptions, suite, name, why);
	fflush(stdout);
}

void ktap_left_out(const char *suite, const char *name, const char *reason,
		   const char *text)
{
	left_out++;
	printf("# left out: %s.%s (%s: %s)\n", suite, name, reason, text);
}

unsigned int ktap_end(void)
{
	printf("# pass:%u fail:%u exceptions:%u left out:%u\n", passed, failed, exceptions,
	       left_out);
	fflush(stdout);
	return failed;
}
