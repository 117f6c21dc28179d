// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin for QEMU that counts the instructions a guest executes, by address
 *
 * At the end it writes a line for each block of translated code that ran:
 *
 *	ADDRESS INSTRUCTIONS
 *
 * both hexadecimal. An address can have several lines.
 *
 * Argument: out=FILE.
 *
 * QEMU 7.2 has no header for plugins in Debian; declarations are as in its
 * qemu-plugin.h, version 1 of the interface.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT	__attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
typedef void (*tb_trans_cb_t)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*udata_id_cb_t)(qemu_plugin_id_t id, void *userdata);
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   tb_trans_cb_t cb);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb,
					      enum qemu_plugin_op op,
					      void *ptr, uint64_t imm);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, udata_id_cb_t cb,
				    void *userdata);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);

EXPORT int qemu_plugin_version = 1;

/* Translated code; never freed, so that QEMU's code may count in it */
struct block {
	struct block	*next;
	uint64_t	pc;
	uint64_t	ran;	/* instructions */
};

static struct block *blocks;
static const char *path;

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	struct block *b = malloc(sizeof(*b));

	if (!b)
		abort();
	*b = (struct block){ .next = blocks, .pc = qemu_plugin_tb_vaddr(tb) };
	blocks = b;
	qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64,
						 &b->ran,
						 qemu_plugin_tb_n_insns(tb));
}

static void on_exit_of_qemu(qemu_plugin_id_t id, void *arg)
{
	FILE *out = fopen(path, "w");
	struct block *b;

	if (!out)
		return;
	for (b = blocks; b; b = b->next)
		if (b->ran)
			fprintf(out, "%" PRIx64 " %" PRIx64 "\n", b->pc, b->ran);
	fclose(out);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc,
			       char **argv)
{
	if (argc != 1 || strncmp(argv[0], "out=", 4))
		return -1;
	path = argv[0] + 4;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
	return 0;
}
