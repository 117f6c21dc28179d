// SPDX-License-Identifier: GPL-2.0
/*
 * Values of each type, in a part of memory that programs use and destroy
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "execute.h"

#define MAX_DEPTH	3	/* of calls for resources */

/* struct result - a resource; @bits is written last */
struct result {
	uint64_t	value;
	uint32_t	bits;
};

static struct result results[MAX_RESULTS];
static unsigned int nr_results;
static __thread sigjmp_buf fault;
static __thread volatile bool may_fault;
static __thread unsigned int depth;

/* xorshift64* */
static uint64_t next(struct thread *t)
{
	t->rnd ^= t->rnd >> 12;
	t->rnd ^= t->rnd << 25;
	t->rnd ^= t->rnd >> 27;
	return t->rnd * 0x2545f4914f6cdd1dull;
}

uint32_t below(struct thread *t, uint32_t n)
{
	return (next(t) >> 32) % n;
}

/* Memory. Another thread may take it away at any time. */

static void on_fault(int signal)
{
	if (may_fault)
		siglongjmp(fault, 1);
	_Exit(128 + signal);
}

static bool copy(void *to, const void *from, uint32_t size)
{
	if (sigsetjmp(fault, 0)) {
		may_fault = false;
		return false;
	}
	may_fault = true;
	memcpy(to, from, size);
	may_fault = false;
	return true;
}

bool load(void *to, uint64_t from, uint32_t size)
{
	uint64_t end = ARENA + NR_SLOTS * SLOT_BYTES;

	return from >= ARENA && from <= end - size &&
	       copy(to, (const void *)(uintptr_t)from, size);
}

void store_reset(void)
{
	struct sigaction action = { .sa_handler = on_fault,
				    .sa_flags = SA_NODEFER };
	char *end = (char *)ARENA + (NR_SLOTS - 2) * SLOT_BYTES;

	if (mmap((void *)ARENA, NR_SLOTS * SLOT_BYTES, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		abort();
	mprotect(end, SLOT_BYTES, PROT_READ);
	mprotect(end + SLOT_BYTES, SLOT_BYTES, PROT_NONE);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	nr_results = 0;
}

/* Mostly the start of a slot, rarely where it is cut short or not aligned */
static uint64_t any_place(struct thread *t, uint32_t size)
{
	uint32_t slot = below(t, 16) ? below(t, NR_SLOTS - 2) / 2 :
				       below(t, NR_SLOTS);
	uint64_t at = ARENA + slot * SLOT_BYTES;

	switch (below(t, 32)) {
	case 0:
		return at + SLOT_BYTES - below(t, size + 1);
	case 1:
		return at + below(t, 64);
	case 2:
		return at + 64 * below(t, 8);
	default:
		return at;
	}
}

/* Resources. Threads add them at once; one whose bits are 0 is not there yet. */

void add_result(uint32_t bits, uint64_t value)
{
	unsigned int i = __atomic_fetch_add(&nr_results, 1, __ATOMIC_RELAXED);
	struct result *result = &results[i % MAX_RESULTS];

	result->value = value;
	__atomic_store_n(&result->bits, bits, __ATOMIC_RELEASE);
}

static const struct result *find(struct thread *t, uint32_t own)
{
	unsigned int i, nr = __atomic_load_n(&nr_results, __ATOMIC_RELAXED);
	unsigned int from = below(t, MAX_RESULTS);

	nr = nr < MAX_RESULTS ? nr : MAX_RESULTS;
	for (i = 0; i < nr; i++) {
		const struct result *result = &results[(from + i) % nr];

		if (__atomic_load_n(&result->bits, __ATOMIC_ACQUIRE) & own)
			return result;
	}
	return NULL;
}

static uint64_t any_resource(struct thread *t, const struct type *type)
{
	const struct result *result;

	if (!below(t, 64) && type->nr)
		return type->values[below(t, type->nr)];
	result = find(t, type->own);
	if ((!result || !below(t, 16)) && depth < MAX_DEPTH) {
		depth++;
		make_resource(t, type->own);
		depth--;
		result = find(t, type->own);
	}
	return result ? result->value : (uint64_t)-1;
}

/* Values */

static uint32_t fill(struct thread *t, const struct type *type, char *to);

static uint64_t any_number(struct thread *t)
{
	switch (below(t, 4)) {
	case 0:
		return 1ull << below(t, 64);
	case 1:
		return (1ull << below(t, 64)) - 1;
	case 2:
		return next(t);
	default:
		return below(t, 16);
	}
}

/* The first value is the usual one. */
static uint64_t any_flags(struct thread *t, const struct type *type)
{
	uint64_t value = type->values[below(t, 2) ? 0 : below(t, type->nr)];
	uint32_t i;

	if (!below(t, 64))
		return any_number(t);
	for (i = 0; i < type->nr; i++)
		if (type->values[i] & (type->values[i] - 1))
			return value;
	while (!below(t, 3))
		value |= type->values[below(t, type->nr)];
	return value;
}

/* Returns its length, which is that of the array or the bytes, by @nr. */
static uint64_t any_pointer(struct thread *t, const struct type *type,
			    uint32_t *nr)
{
	const struct type *elem = type->elem;
	char buf[4096] __attribute__((aligned(8)));
	uint64_t at = any_place(t, elem->size);

	memset(buf, 0, elem->size);
	*nr = fill(t, elem, buf);
	if (type->optional && !below(t, 4)) {
		*nr = 0;
		return 0;
	}
	if (!type->out)
		copy((void *)(uintptr_t)at, buf, elem->kind != ARRAY ? *nr :
		     *nr * elem->elem->size);
	return at;
}

/* A value of at most 8 bytes; @nr gets what LEN says of it. */
static uint64_t any_value(struct thread *t, const struct type *type,
			  uint32_t *nr)
{
	switch (type->kind) {
	case CONST:
		return below(t, 128) ? type->lo : any_number(t);
	case INT:
		if (type->hi == (uint64_t)-1 || !below(t, 32))
			return any_number(t);
		return type->lo + below(t, type->hi - type->lo + 1);
	case FLAGS:
		return any_flags(t, type);
	case RESOURCE:
		return any_resource(t, type);
	case PTR:
		return any_pointer(t, type, nr);
	case VMA:
		return ARENA + below(t, NR_SLOTS) * SLOT_BYTES +
		       4096 * below(t, 4);
	default:
		return 0;
	}
}

static uint64_t length(struct thread *t, int of, const uint32_t *lengths,
		       uint32_t bytes)
{
	if (!below(t, 64))
		return any_number(t);
	return of < 0 ? bytes : lengths[of];
}

static void fill_struct(struct thread *t, const struct type *type, char *to)
{
	uint32_t i, lengths[MAX_OPTIONS] = {};

	for (i = 0; i < type->nr; i++)
		lengths[i] = fill(t, type->members[i].type,
				  to + type->members[i].offset);
	for (i = 0; i < type->nr; i++) {
		const struct member *m = &type->members[i];
		uint64_t value;

		if (m->type->kind != LEN)
			continue;
		value = length(t, m->type->of, lengths, type->size);
		memcpy(to + m->offset, &value, m->type->size);
	}
}

/* Returns what LEN says of it: items of an array, bytes of all else. */
static uint32_t fill(struct thread *t, const struct type *type, char *to)
{
	uint32_t i, nr = type->size;
	uint64_t value;

	switch (type->kind) {
	case ARRAY:
		nr = type->lo + below(t, type->hi - type->lo + 1);
		for (i = 0; i < nr; i++)
			fill(t, type->elem, to + i * type->elem->size);
		return nr;
	case STRUCT:
		fill_struct(t, type, to);
		return nr;
	case UNION:
		i = below(t, type->nr);
		fill(t, type->members[i].type, to);
		t->option = i;
		return nr;
	default:
		value = any_value(t, type, &nr);
		memcpy(to, &value, type->size);
		return nr;
	}
}

/* A call about memory, whose second argument is a size, leaves our own alone. */
static void keep_in_arena(const struct call *call, uint64_t *args)
{
	uint64_t most = ARENA + NR_SLOTS * SLOT_BYTES - args[0];

	if (call->nr && call->args[0].type->kind == VMA && args[1] > most)
		args[1] = most;
}

void make_args(struct thread *t, const struct call *call, uint64_t *args)
{
	uint32_t lengths[MAX_ARGS] = {};
	unsigned int i;

	for (i = 0; i < call->nr; i++)
		args[i] = any_value(t, call->args[i].type, &lengths[i]);
	for (i = 0; i < call->nr; i++)
		if (call->args[i].type->kind == LEN)
			args[i] = length(t, call->args[i].type->of, lengths, 0);
	keep_in_arena(call, args);
}

static void take_from(const struct type *type, uint64_t at)
{
	uint64_t value = 0;
	uint32_t i;

	if (type->kind == RESOURCE && load(&value, at, type->size))
		add_result(type->bits, value);
	for (i = 0; type->kind == STRUCT && i < type->nr; i++)
		take_from(type->members[i].type, at + type->members[i].offset);
}

void take_results(const struct call *call, const uint64_t *args, long ret)
{
	unsigned int i;

	if (ret < 0)
		return;
	if (call->bits)
		add_result(call->bits, ret);
	for (i = 0; i < call->nr; i++)
		if (call->args[i].type->kind == PTR && call->args[i].type->out)
			take_from(call->args[i].type->elem, args[i]);
}
