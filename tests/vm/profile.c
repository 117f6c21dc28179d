// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin for QEMU that counts the instructions a guest executes, by address
 *
 * At the end it writes a line for each block of translated code that ran:
 *
 *	ADDRESS TIMES INSTRUCTIONS STEPS CALLS IRETS WINDOWS LOCKED TABLES MSRS
 *		RETURNS
 *
 * all hexadecimal. An address can have several lines. TIMES is how often the block ran.
 * The numbers from CALLS on are those of enum kind, instructions as well. Only x86-64 has
 * them and STEPS.
 *
 * Under -icount QEMU executes a string instruction with a rep prefix once for each
 * element, and once more to see that none is left. The first time is an instruction, the
 * others are steps. The sum of both is what the clock of the guest counts.
 *
 * Argument: out=FILE. One CPU.
 *
 * QEMU 7.2 has no header for plugins in Debian; declarations are as in its
 * qemu-plugin.h, version 1 of the interface.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT	__attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_info { const char *target_name; };	/* and more */
typedef void (*tb_trans_cb_t)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*udata_id_cb_t)(qemu_plugin_id_t id, void *userdata);
typedef void (*udata_cpu_cb_t)(unsigned int cpu, void *userdata);
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   tb_trans_cb_t cb);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb,
					      enum qemu_plugin_op op,
					      void *ptr, uint64_t imm);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    udata_cpu_cb_t cb,
					    enum qemu_plugin_cb_flags flags,
					    void *userdata);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, udata_id_cb_t cb,
				    void *userdata);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb,
						 size_t nr);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

EXPORT int qemu_plugin_version = 1;

/**
 * enum kind - instructions that cost more than others
 * @CALLS: enter the kernel: syscall, sysenter, int 0x80
 * @IRETS: iret: the end of an interrupt, of an exception, and of some calls
 * @WINDOWS: stac: the kernel may access user memory up to clac
 * @LOCKED: have a lock prefix, or are xchg with memory
 * @TABLES: mov to cr3: the page table is another one
 * @MSRS: wrmsr
 * @RETURNS: ret; against attacks by speculation it may be made slow
 * @REPEATED: string instructions that repeat; not in the output
 * @KINDS: how many
 * @ORDINARY: no kind
 */
enum kind { CALLS, IRETS, WINDOWS, LOCKED, TABLES, MSRS, RETURNS, REPEATED, KINDS,
	    ORDINARY };

/* Translated code; never freed, so that QEMU's code may count in it */
struct block {
	struct block	*next;
	uint64_t	pc;
	uint64_t	ran;		/* times */
	uint64_t	steps;
	uint64_t	rep;		/* address of its last instruction, if that repeats */
	uint64_t	nr;		/* instructions, */
	uint64_t	of[KINDS];	/* and of a kind */
};

static struct block *blocks;
static const char *path;
static bool x86;

static uint64_t ran;		/* instructions and steps so far */
static struct {
	uint64_t	pc;
	uint64_t	ran;
} last_rep;

/* --- decoding ------------------------------------------------------------ */

/**
 * struct code - an instruction
 * @at: its bytes; reads behind the end give zeros
 * @left: how many bytes
 * @lock: there is a lock prefix
 * @rep: there is a rep prefix
 * @rex_r: a REX prefix extends the register in the ModRM byte
 */
struct code {
	const uint8_t	*at;
	size_t		left;
	bool		lock;
	bool		rep;
	bool		rex_r;
};

static uint8_t byte_of(struct code *c)
{
	if (!c->left)
		return 0;
	c->left--;
	return *c->at++;
}

/* Returns the first byte behind the prefixes */
static uint8_t skip_prefixes(struct code *c)
{
	for (;;) {
		uint8_t byte = byte_of(c);

		if (byte == 0xf0)
			c->lock = true;
		else if (byte == 0xf2 || byte == 0xf3)
			c->rep = true;
		else if (byte >= 0x40 && byte <= 0x4f)
			c->rex_r = byte & 4;
		else if (!byte || !strchr("\x26\x2e\x36\x3e\x64\x65\x66\x67", byte))
			return byte;
	}
}

static enum kind kind_of_two_bytes(struct code *c)
{
	switch (byte_of(c)) {
	case 0x01:
		return byte_of(c) == 0xcb ? WINDOWS : ORDINARY;
	case 0x05:
	case 0x34:
		return CALLS;
	case 0x22:
		return !c->rex_r && (byte_of(c) >> 3 & 7) == 3 ? TABLES : ORDINARY;
	case 0x30:
		return MSRS;
	}
	return ORDINARY;
}

static enum kind kind_of(struct code *c)
{
	uint8_t byte = skip_prefixes(c);

	if (c->lock)
		return LOCKED;
	switch (byte) {
	case 0x0f:
		return kind_of_two_bytes(c);
	case 0x6c ... 0x6f:
	case 0xa4 ... 0xa7:
	case 0xaa ... 0xaf:
		return c->rep ? REPEATED : ORDINARY;
	case 0x86:
	case 0x87:
		return byte_of(c) >> 6 == 3 ? ORDINARY : LOCKED;
	case 0xc2:
	case 0xc3:
		return RETURNS;
	case 0xcd:
		return byte_of(c) == 0x80 ? CALLS : ORDINARY;
	case 0xcf:
		return IRETS;
	}
	return ORDINARY;
}

/* --- counting ------------------------------------------------------------ */

/* A step follows the instruction or a step before, and is a block of its own. */
static void on_rep(unsigned int cpu, void *arg)
{
	struct block *b = arg;

	(void)cpu;
	if (b->nr == 1 && last_rep.pc == b->rep && last_rep.ran + 1 == ran)
		b->steps++;
	last_rep.pc = b->rep;
	last_rep.ran = ran;
}

static void examine(struct block *b, struct qemu_plugin_insn *insn)
{
	struct code c = {
		.at = qemu_plugin_insn_data(insn),
		.left = qemu_plugin_insn_size(insn),
	};
	enum kind kind = kind_of(&c);

	if (kind == ORDINARY)
		return;
	b->of[kind]++;
	if (kind != REPEATED)
		return;
	b->rep = qemu_plugin_insn_vaddr(insn);
	qemu_plugin_register_vcpu_insn_exec_cb(insn, on_rep,
					       QEMU_PLUGIN_CB_NO_REGS, b);
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	struct block *b = malloc(sizeof(*b));
	size_t i;

	(void)id;
	if (!b)
		abort();
	*b = (struct block){
		.next = blocks,
		.pc = qemu_plugin_tb_vaddr(tb),
		.nr = qemu_plugin_tb_n_insns(tb),
	};
	blocks = b;
	for (i = 0; x86 && i < b->nr; i++)
		examine(b, qemu_plugin_tb_get_insn(tb, i));
	qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64,
						 &b->ran, 1);
	qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64,
						 &ran, b->nr);
}

static void print_block(FILE *out, const struct block *b)
{
	int i;

	fprintf(out, "%" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64, b->pc, b->ran,
		b->nr * b->ran - b->steps, b->steps);
	for (i = 0; i < REPEATED; i++)
		fprintf(out, " %" PRIx64, b->of[i] * b->ran);
	fputc('\n', out);
}

static void on_exit_of_qemu(qemu_plugin_id_t id, void *arg)
{
	FILE *out = fopen(path, "w");
	struct block *b;

	(void)id;
	(void)arg;
	if (!out)
		return;
	for (b = blocks; b; b = b->next)
		if (b->ran)
			print_block(out, b);
	fclose(out);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_plugin_info *info,
			       int argc, char **argv)
{
	if (argc != 1 || strncmp(argv[0], "out=", 4))
		return -1;
	path = argv[0] + 4;
	x86 = !strcmp(info->target_name, "x86_64");
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
	return 0;
}
