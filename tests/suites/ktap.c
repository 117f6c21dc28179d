// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "ktap.h"

static unsigned int passed, failed, left_out;

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

void ktap_result(bool ok, const char *suite, const char *name,
		 const char *diagnostics)
{
	while (*diagnostics) {
		size_t len = strcspn(diagnostics, "\n");

		printf("# %.*s\n", (int)len, diagnostics);
		diagnostics += len + (diagnostics[len] == '\n');
	}
	if (ok)
		passed++;
	else
		failed++;
	printf("%s %u %s.%s\n", ok ? "ok" : "not ok", passed + failed, suite,
	       name);
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
	printf("# pass:%u fail:%u left out:%u\n", passed, failed, left_out);
	fflush(stdout);
	return failed;
}
