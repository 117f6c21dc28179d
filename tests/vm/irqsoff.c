// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin for QEMU that finds the longest stretch with interrupts off, in
 * instructions, on a guest with one x86 CPU
 *
 * The plugin sees in the instructions where interrupts go off and on: cli and sti;
 * the entries of the kernel, whose addresses are in a file; iretq and sysretq. So it
 * traces nothing in the guest and changes nothing there. An exception taken with
 * interrupts off returns with interrupts off.
 *
 * The guest begins and ends a measurement by a nop with a magic number: B before
 * there are watches, C with them, see tests/suites/common/worst.h. At the end a line
 * goes to the output:
 *
 *	B|C LENGTH OURS BEFORE AFTER PLACE:COUNT...
 *
 * LENGTH is the longest stretch, OURS the longest one in which code of kevent ran.
 * BEFORE and AFTER are the addresses of the code that ran before and after the
 * latter, PLACE and COUNT say where most of its instructions were.
 *
 * Letter S begins a measurement, too. What it finds is only in the file shared=FILE, whose
 * memory the guest sees as that of a PCI device, as soon as the measurement ends:
 * LENGTH, OURS, and the seconds of the host's clock, 8 bytes each. Letter T only stores
 * there how many instructions have run outside interrupts so far, as the fourth number.
 *
 * Arguments: out=FILE, shared=FILE, entries=FILE with an address in each line,
 * calls=N if the first N of them are for system calls, first=ADDRESS and last=ADDRESS of
 * our code.
 *
 * QEMU 7.2 has no header for plugins in Debian; declarations are as in its
 * qemu-plugin.h, version 1 of the interface.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <fcntl.h>
#include <sys/mman.h>

#define EXPORT	__attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void (*tb_trans_cb_t)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*udata_cb_t)(unsigned int vcpu_index, void *userdata);
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   tb_trans_cb_t cb);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
					  udata_cb_t cb,
					  enum qemu_plugin_cb_flags flags,
					  void *userdata);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    udata_cb_t cb,
					    enum qemu_plugin_cb_flags flags,
					    void *userdata);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb,
						 size_t idx);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

EXPORT int qemu_plugin_version = 1;

#define MAX_ENTRIES	1024
#define BLOCKS		(1 << 18)
#define PLACES		12

/* Translated code at an address; a stretch counts how often it runs. */
struct block {
	uint64_t	pc;
	uint64_t	stretch;	/* number of its last stretch */
	uint64_t	ran;		/* instructions in that stretch */
};

/* The longest stretch with code of kevent in it */
struct longest {
	uint64_t	length;
	uint64_t	before, after;	/* addresses */
	struct block	place[PLACES];
};

static uint64_t entry[MAX_ENTRIES];	/* those for system calls are the first */
static unsigned int nr_calls;
static unsigned int nr_entries;
static struct block *blocks;
static FILE *out;

static volatile uint64_t *shared;	/* with the guest */

static char measuring;		/* B, C, S or 0 */
static uint64_t longest_at_all;
static struct longest longest;
static uint64_t total;		/* instructions up to the end of this block */
static uint64_t base;		/* up to its beginning */
static uint64_t current, previous;	/* addresses of blocks */
static bool off;
static uint64_t off_at, off_pc;
static uint64_t stretch;	/* counts them */
static bool ours;		/* code of kevent has run in it */
static uint64_t first, last;	/* code of kevent */
static bool exception;		/* taken with interrupts off */
static bool look_after;		/* the longest stretch ended before it */
static unsigned int depth;	/* of interrupts and exceptions in a system call */
static uint64_t interrupt_at;	/* the outermost one */
static uint64_t in_interrupts;	/* instructions */

/* A hash by address; of blocks that collide, the table has the last one. */
static struct block *block_of(uint64_t pc)
{
	return &blocks[(pc * 0x9e3779b97f4a7c15ull) >> 46];
}

static void turn_off(uint64_t at)
{
	if (off)
		return;
	off = true;
	ours = false;
	off_at = at;
	off_pc = previous;
	stretch++;
}

static void keep_places(void)
{
	struct block *b;
	unsigned int i;

	memset(longest.place, 0, sizeof(longest.place));
	for (b = blocks; b < blocks + BLOCKS; b++) {
		if (b->stretch != stretch)
			continue;
		for (i = 0; i < PLACES && longest.place[i].ran >= b->ran; i++)
			;
		if (i == PLACES)
			continue;
		memmove(&longest.place[i + 1], &longest.place[i],
			(PLACES - 1 - i) * sizeof(*b));
		longest.place[i] = *b;
	}
}

static void turn_on(uint64_t at)
{
	if (!off)
		return;
	off = false;
	if (!measuring)
		return;
	if (at - off_at > longest_at_all)
		longest_at_all = at - off_at;
	if (!ours || at - off_at <= longest.length)
		return;
	longest.length = at - off_at;
	longest.before = off_pc;
	look_after = true;
	if (measuring != 'S')
		keep_places();
}

/* Counts instructions; the argument is the index of one in its block. */

static void on_cli(unsigned int cpu, void *nth)
{
	turn_off(base + (uintptr_t)nth);
}

static void on_sti(unsigned int cpu, void *nth)
{
	turn_on(base + (uintptr_t)nth + 1);
}

static void on_return(unsigned int cpu, void *nth)
{
	if (depth && !--depth)
		in_interrupts += base + (uintptr_t)nth + 1 - interrupt_at;
	if (exception)
		exception = false;
	else
		turn_on(base + (uintptr_t)nth + 1);
}

/* Runs in user mode, so interrupts are on. */
static void begin(char what)
{
	memset(&longest, 0, sizeof(longest));
	longest_at_all = 0;
	off = false;
	exception = false;
	measuring = what;
}

static void on_begin_without(unsigned int cpu, void *nth)
{
	begin('B');
}

static void on_begin_with(unsigned int cpu, void *nth)
{
	begin('C');
}

static void on_begin_shared(unsigned int cpu, void *nth)
{
	begin('S');
}

/* A system call begins in user mode, even if an interrupt has not returned. */
static void on_entry(bool call)
{
	if (call)
		depth = 0;
	else if (!depth++)
		interrupt_at = base;
	exception = off;
	turn_off(base);
}

static void on_time(unsigned int cpu, void *nth)
{
	if (shared)
		shared[3] = base + (uintptr_t)nth - in_interrupts;
}

static void share(void)
{
	shared[0] = longest_at_all;
	shared[1] = longest.length;
	shared[2] = time(NULL);
}

static void print_longest(void)
{
	unsigned int i;

	fprintf(out, "%c %" PRIu64 " %" PRIu64 " %" PRIx64 " %" PRIx64,
		measuring, longest_at_all, longest.length, longest.before,
		longest.after);
	for (i = 0; i < PLACES && longest.place[i].ran; i++)
		fprintf(out, " %" PRIx64 ":%" PRIu64, longest.place[i].pc,
			longest.place[i].ran);
	fprintf(out, "\n");
	fflush(out);
}

static void on_end(unsigned int cpu, void *nth)
{
	if (measuring && shared)
		share();
	if (measuring == 'B' || measuring == 'C')
		print_longest();
	measuring = 0;
}

/* Blocks, as they are translated; never freed */
struct ran {
	uint64_t	pc;
	unsigned int	nr;
	bool		entry;
	bool		call;	/* an entry for system calls */
};

static void on_block(unsigned int cpu, void *arg)
{
	const struct ran *r = arg;
	struct block *b;

	base = total;
	total += r->nr;
	previous = current;
	current = r->pc;
	if (look_after) {
		look_after = false;
		longest.after = r->pc;
	}
	if (r->entry)
		on_entry(r->call);
	if (!off || !measuring)
		return;
	ours |= r->pc >= first && r->pc < last;
	b = block_of(r->pc);
	if (b->stretch != stretch || b->pc != r->pc)
		*b = (struct block){ .pc = r->pc, .stretch = stretch };
	b->ran += r->nr;
}

static udata_cb_t callback_of(const uint8_t *code, size_t size)
{
	/* nopl with a displacement that no compiler uses */
	static const uint8_t nop[] = { 0x0f, 0x1f, 0x80 };

	if (size == 1 && code[0] == 0xfa)
		return on_cli;
	if (size == 1 && code[0] == 0xfb)
		return on_sti;
	if (size == 2 && code[0] == 0x48 && code[1] == 0xcf)
		return on_return;
	if (size == 3 && code[0] == 0x48 && code[1] == 0x0f && code[2] == 0x07)
		return on_return;
	if (size != 7 || memcmp(code, nop, 3) || memcmp(code + 4, "VEK", 3))
		return NULL;
	switch (code[3]) {
	case 'B':
		return on_begin_without;
	case 'C':
		return on_begin_with;
	case 'S':
		return on_begin_shared;
	case 'T':
		return on_time;
	case 'E':
		return on_end;
	default:
		return NULL;
	}
}

static void find_entry(struct ran *r)
{
	unsigned int i;

	for (i = 0; i < nr_entries && entry[i] != r->pc; i++)
		;
	r->entry = i < nr_entries;
	r->call = i < nr_calls;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t i, nr = qemu_plugin_tb_n_insns(tb);
	struct ran *r = malloc(sizeof(*r));
	struct qemu_plugin_insn *insn;
	udata_cb_t cb;

	*r = (struct ran){ qemu_plugin_tb_vaddr(tb), nr };
	find_entry(r);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block,
					     QEMU_PLUGIN_CB_NO_REGS, r);
	for (i = 0; i < nr; i++) {
		insn = qemu_plugin_tb_get_insn(tb, i);
		cb = callback_of(qemu_plugin_insn_data(insn),
				 qemu_plugin_insn_size(insn));
		if (cb)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, cb,
							       QEMU_PLUGIN_CB_NO_REGS,
							       (void *)i);
	}
}

static bool read_entries(const char *path)
{
	FILE *in = fopen(path, "r");

	while (in && nr_entries < MAX_ENTRIES &&
	       fscanf(in, "%" SCNx64, &entry[nr_entries]) == 1)
		nr_entries++;
	if (in)
		fclose(in);
	return nr_entries > 0;
}

static volatile uint64_t *map_shared(const char *path)
{
	int fd = open(path, O_RDWR);
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			    0);

	return memory == MAP_FAILED ? NULL : memory;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc,
			       char **argv)
{
	int i;

	blocks = calloc(BLOCKS, sizeof(*blocks));
	for (i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4))
			out = fopen(argv[i] + 4, "w");
		else if (!strncmp(argv[i], "shared=", 7))
			shared = map_shared(argv[i] + 7);
		else if (!strncmp(argv[i], "calls=", 6))
			nr_calls = strtoul(argv[i] + 6, NULL, 10);
		else if (!strncmp(argv[i], "first=", 6))
			first = strtoull(argv[i] + 6, NULL, 16);
		else if (!strncmp(argv[i], "last=", 5))
			last = strtoull(argv[i] + 5, NULL, 16);
		else if (strncmp(argv[i], "entries=", 8) ||
			 !read_entries(argv[i] + 8))
			return -1;
	}
	if (!blocks || !out || !nr_entries)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	return 0;
}
