/* SPDX-License-Identifier: GPL-2.0 */
/*
 * JSON on standard output, each value in one line
 */
#ifndef JSON_H
#define JSON_H

/* @key is NULL in an array; @bracket one of { } [ ]. */
void json_begin(const char *key, char bracket);
void json_end(char bracket);
void json_end_line(void);
void json_number(const char *key, unsigned long long number);
void json_fraction(const char *key, double number);
void json_string(const char *key, const char *string);

#endif /* JSON_H */
