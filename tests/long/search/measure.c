// SPDX-License-Identifier: GPL-2.0
/*
 * What an input costs
 *
 * The guest's clock counts instructions. The plugin tests/vm/irqsoff.c puts the longest
 * stretch with interrupts off where a PCI device of the guest has its memory.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "search.h"

#define DEVICES		"/sys/bus/pci/devices/*"
#define IVSHMEM		"0x1af4 0x1110"
#define LEAST_CHARGE	(192 << 10)	/* slabs come in pages */
#define QUEUE_CHARGE	(8 << 10)	/* a queue has memory of its own */

/* As the plugin has it */
struct shared {
	uint64_t	at_all;		/* longest stretch */
	uint64_t	ours;		/* with code of kevent in it */
	uint64_t	seconds;	/* of the host's clock */
	uint64_t	instructions;
};

static volatile struct shared *shared;
static struct cost *sums;
static uint64_t most[NR_METRICS];	/* of this step */
static long slabs, slabs_before, charge;
static bool with_memory, with_places;
static unsigned int most_queues;
static long switched;

static bool read_word(const char *dir, const char *name, char *to, size_t size)
{
	char path[300];
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	in = fopen(path, "r");
	if (!in || !fgets(to, size, in))
		to[0] = 0;
	if (in)
		fclose(in);
	to[strcspn(to, "\n")] = 0;
	return to[0];
}

static bool is_ours(const char *dir)
{
	char vendor[20], device[20], both[50];

	read_word(dir, "vendor", vendor, sizeof(vendor));
	read_word(dir, "device", device, sizeof(device));
	snprintf(both, sizeof(both), "%s %s", vendor, device);
	return !strcmp(both, IVSHMEM);
}

static void map_device(const char *dir)
{
	char path[300];
	void *memory;
	int fd;

	snprintf(path, sizeof(path), "%s/enable", dir);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, "1", 1) != 1)
		return;
	close(fd);
	snprintf(path, sizeof(path), "%s/resource2", dir);
	fd = open(path, O_RDWR);
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (memory != MAP_FAILED)
		shared = memory;
}

void measure_open(void)
{
	unsigned int i;
	glob_t found;

	if (!glob(DEVICES, 0, NULL, &found))
		for (i = 0; i < found.gl_pathc && !shared; i++)
			if (is_ours(found.gl_pathv[i]))
				map_device(found.gl_pathv[i]);
	if (shared)
		return;
	fprintf(stderr, "kevent-search: no memory of the plugin; start it by "
		"tests/long/search/run\n");
	exit(2);
}

/* The plugin recognises these instructions, which do nothing. */
#define MARK(letter) \
	__asm__ volatile(".byte 0x0f, 0x1f, 0x80, '" letter "', 'V', 'E', 'K'" \
			 ::: "memory")

uint64_t host_seconds(void)
{
	MARK("S");
	MARK("E");
	return shared->seconds;
}

/* Instructions so far, without those of interrupts */
static uint64_t instructions(void)
{
	MARK("T");
	return shared->instructions;
}

/* How often another thread has run instead of this one */
static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

uint64_t call_begins(void)
{
	switched = switches();
	return instructions();
}

/* A call that another thread interrupts does not count. */
void call_ends(enum metric metric, uint64_t began, int entries)
{
	uint64_t took = instructions() - began;

	if (switches() != switched)
		return;
	took /= entries > 1 ? entries : 1;
	if (took > most[metric])
		most[metric] = took;
}

/* The plugin also says where stretches are, which takes longer. */
void measure_places(void)
{
	with_places = true;
}

void measure_begin(struct cost *cost)
{
	sums = cost;
	slabs = 0;
	charge = 0;
	most_queues = 0;
}

static long number_in(const char *path, const char *key)
{
	char line[200];
	long value = -1;
	FILE *in = fopen(path, "r");

	while (in && value < 0 && fgets(line, sizeof(line), in))
		if (!strncmp(line, key, strlen(key)))
			value = strtol(line + strlen(key), NULL, 10);
	if (in)
		fclose(in);
	return value;
}

static void write_as_root(const char *path, const char *text)
{
	int fd;

	become(0);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, text, 1) != 1)
		abort();
	close(fd);
	become(1000);
}

/* A CPU may keep a part of the sum for itself until it is refreshed. */
static long slab_bytes(void)
{
	write_as_root("/proc/sys/vm/stat_refresh", "1");
	return number_in("/proc/meminfo", "Slab:") << 10;
}

static long charged(void)
{
	unsigned int i, nr = 0;
	char path[60];
	int fd = -1;

	for (i = 0; i < NR_OPENED; i++)
		if (queues[i].fd >= 0) {
			fd = queues[i].fd;
			nr++;
		}
	most_queues = nr > most_queues ? nr : most_queues;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	return number_in(path, "kevent-user-bytes:");
}

/* Operations by which only kevent's memory grows */
static bool is_kept(const struct step *s)
{
	return s->times > 16 && !s->op.child &&
	       (s->op.code == OP_CTL || s->op.code == OP_SETTIME ||
		s->op.code == OP_KILL);
}

void step_begins(const struct step *s)
{
	memset(most, 0, sizeof(most));
	with_memory = is_kept(s);
	if (with_memory) {
		settle();
		slabs_before = slab_bytes();
	}
	if (with_places)
		MARK("C");
	else
		MARK("S");
}

/* What was freed may be there until a grace period has passed. */
static void add_memory(void)
{
	long now;

	settle();
	slabs += slab_bytes() - slabs_before;
	now = charged();
	if (now > charge)
		charge = now;
	if (charge >= LEAST_CHARGE && slabs > 0 &&
	    charge >= (long)most_queues * QUEUE_CHARGE)
		most[BYTES] = slabs * 1000 / charge;
}

void step_ends(unsigned int nth)
{
	unsigned int i;

	MARK("E");
	most[STRETCH] = shared->ours;
	if (with_memory)
		add_memory();
	for (i = 0; i < NR_METRICS; i++) {
		if (most[i] <= sums->value[i])
			continue;
		sums->value[i] = most[i];
		sums->step[i] = nth;
	}
}
