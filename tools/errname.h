/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Names of errors
 */
#ifndef ERRNAME_H
#define ERRNAME_H

/* As "EINVAL"; "E?" if it has none */
const char *errname(int error);

#endif /* ERRNAME_H */
