// SPDX-License-Identifier: GPL-2.0
/*
 * JSON on standard output, each value in one line
 */
#include <stdbool.h>
#include <stdio.h>

#include "json.h"

/* A value was written, and nothing after it */
static bool comma;

/* Each byte that is not ASCII counts as a character: names need not be UTF-8. */
static void quote(const char *string)
{
	const unsigned char *c = (const unsigned char *)string;

	putchar('"');
	for (; *c; c++) {
		if (*c < ' ' || *c > '~')
			printf("\\u%04x", *c);
		else if (*c == '"' || *c == '\\')
			printf("\\%c", *c);
		else
			putchar(*c);
	}
	putchar('"');
}

static void begin_value(const char *key)
{
	if (comma)
		putchar(',');
	if (key) {
		quote(key);
		putchar(':');
	}
	comma = true;
}

void json_begin(const char *key, char bracket)
{
	begin_value(key);
	putchar(bracket);
	comma = false;
}

void json_end(char bracket)
{
	putchar(bracket);
	comma = true;
}

/* Another value may follow, in a line of its own. */
void json_end_line(void)
{
	putchar('\n');
	comma = false;
}

void json_number(const char *key, unsigned long long number)
{
	begin_value(key);
	printf("%llu", number);
}

/* To the thousandth; @number is finite, and not negative. */
void json_fraction(const char *key, double number)
{
	begin_value(key);
	printf("%.3f", number);
}

void json_string(const char *key, const char *string)
{
	begin_value(key);
	quote(string);
}
