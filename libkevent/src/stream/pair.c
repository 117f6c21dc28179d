// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Streams: the pages in which two processes say that they sleep
 *
 * The side that connects makes a page for all its streams to the same listener, and passes
 * it beside the memory of each. A set that accepts knows it again by its inode, and takes a
 * slot of it. Processes that accept from one listener share a page, each with its slot: one
 * can keep the others and the client from waking each other, and nothing else. The name, the
 * process and the user of the listener tell which those are. Without a name, as of socketpair(), and where the
 * number of the process is unknown, there is no such page, but one in the memory of each stream.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "api/identity.h"
#include "api/raw_syscall.h"
#include "lane/parcel.h"
#include "stream.h"

#define PAGE		4096U
#define MAX_PAGES	64U	/* that a set has made */

static_assert(sizeof(struct pair_page) <= PAGE, "one page");

static void list(struct pair *p)
{
	p->next = p->set->pairs;
	p->set->pairs = p;
	p->listed = true;
	if (!p->set->armed)
		return;
	/* The set looks at it after this. Pairs with kevent_stream_notify() of each peer. */
	lane_store(pair_asleep(p), p->set->sleep);
	lane_full_barrier();
}

static void unlist(struct pair *p)
{
	struct pair **at = &p->set->pairs;

	if (!p->listed)
		return;
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	p->listed = false;
}

static void end_page(struct pair *p)
{
	unlist(p);
	/* Another set may have it now. In a child of fork() it is the parent's. */
	if (p->side && kevent_process_is(p->set->process)) {
		lane_store(pair_asleep(p), 0);
		lane_store(&p->page->slot[p->slot].owner, 0);
	}
	if (p->map)
		munmap(p->map, PAGE);
	if (p->fd >= 0)
		kevent_close_fd(p->fd);
	free(p->chain);
	free(p);
}

/* Maps the page @fd, with a chain for each index. */
static struct pair *map_page(struct kevent_streams *set, int fd, __u32 side)
{
	struct pair *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->set = set;
	p->side = side;
	p->fd = -1;
	p->mask = PAIR_INDEXES - 1;
	p->chain = calloc(PAIR_INDEXES, sizeof(*p->chain));
	p->map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		      fd, 0);
	p->page = p->map;
	if (p->map != MAP_FAILED && p->chain)
		return p;
	if (p->map != MAP_FAILED)
		munmap(p->map, PAGE);
	free(p->chain);
	free(p);
	return NULL;
}

/* --- the side that connects ---------------------------------------------- */

static bool find_key(int sock, struct stream_key *key)
{
	socklen_t len = sizeof(key->cred);

	memset(key, 0, sizeof(*key));
	key->len = sizeof(key->name);
	return !getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &key->cred, &len) &&
	       key->cred.pid &&
	       !getpeername(sock, (struct sockaddr *)&key->name, &key->len) &&
	       key->len > offsetof(struct sockaddr_un, sun_path) &&
	       key->len <= sizeof(key->name);
}

static bool is_key(const struct stream_key *a, const struct stream_key *b)
{
	return a->len == b->len && a->cred.pid == b->cred.pid &&
	       a->cred.uid == b->cred.uid && a->cred.gid == b->cred.gid &&
	       !memcmp(&a->name, &b->name, a->len);
}

/* There may be so many only; one that no stream uses makes room. */
static bool has_room(const struct kevent_streams *set)
{
	struct pair *p, *unused = NULL;
	__u32 nr = 0;

	for (p = set->pairs; p; p = p->next) {
		nr += p->map && !p->side;
		if (p->map && !p->side && !p->refs)
			unused = p;
	}
	if (nr < MAX_PAGES)
		return true;
	if (unused)
		end_page(unused);
	return unused;
}

static struct pair *make_page(struct kevent_streams *set, const struct stream_key *key)
{
	struct pair *p;
	int fd;

	if (!has_room(set))
		return NULL;
	fd = kevent_parcel_memory("kevent-pair", PAGE);
	if (fd < 0)
		return NULL;
	p = map_page(set, fd, 0);
	if (!p) {
		kevent_close_fd(fd);
		return NULL;
	}
	p->page->magic = PAIR_MAGIC;
	p->fd = fd;
	p->key = *key;
	list(p);
	return p;
}

struct pair *kevent_pair_for(struct kevent_streams *set, int sock)
{
	struct stream_key key;
	struct pair *p;

	if (!find_key(sock, &key))
		return NULL;
	for (p = set->pairs; p; p = p->next)
		if (p->map && !p->side && !p->full && is_key(&p->key, &key))
			break;
	if (!p)
		p = make_page(set, &key);
	if (p)
		p->refs++;
	return p;
}

/* --- the side that accepts ----------------------------------------------- */

static struct pair *find_page(struct kevent_streams *set,
			      const struct kevent_identity *id)
{
	struct pair *p;

	for (p = set->pairs; p; p = p->next)
		if (p->map && p->side && p->ino == id->ino && p->dev[0] == id->dev[0] &&
		    p->dev[1] == id->dev[1])
			return p;
	return NULL;
}

static bool take_slot(struct pair *p)
{
	if (lane_load(&p->page->magic) != PAIR_MAGIC)
		return false;
	for (p->slot = 0; p->slot < PAIR_SLOTS; p->slot++)
		if (stream_swap(&p->page->slot[p->slot].owner, 0, 1))
			return true;
	return false;
}

struct pair *kevent_pair_from(struct kevent_streams *set, int fd)
{
	struct kevent_identity id;
	struct pair *p;
	size_t bytes;

	/* First that it is memory: no other file system is asked. */
	if (kevent_parcel_check(fd, PAGE, PAGE, &bytes) || !kevent_identify(fd, &id))
		return NULL;
	p = find_page(set, &id);
	if (!p) {
		p = map_page(set, fd, 1);
		if (!p)
			return NULL;
		if (!take_slot(p)) {
			/* Not one of its slots is this set's. */
			p->side = 0;
			end_page(p);
			return NULL;
		}
		p->ino = id.ino;
		memcpy(p->dev, id.dev, sizeof(p->dev));
		list(p);
	}
	p->refs++;
	return p;
}

/* --- streams ------------------------------------------------------------- */

void kevent_pair_own(struct kevent_stream *s)
{
	s->own.set = s->set;
	s->own.page = &s->mem->own;
	s->own.chain = &s->only;
	s->own.side = s->side;
	s->own.fd = -1;
}

void kevent_pair_enter(struct kevent_stream *s, struct pair *p, __u32 slot)
{
	struct kevent_stream **at = &p->chain[s->index & p->mask];
	__u32 word = s->index / 64 % PAIR_WORDS;
	struct pair_slot *other = &p->page->slot[slot];

	s->pair = p;
	s->bit = 1ULL << s->index % 64;
	s->ready = p->side ? &p->page->ready[word] : &other->ready[word];
	s->asleep = p->side ? &p->page->asleep : &other->asleep;
	s->rung = &p->rung[p->side ? 0 : slot];
	s->same = *at;
	*at = s;
	if (!p->listed)
		list(p);
}

void kevent_pair_leave(struct kevent_stream *s)
{
	struct kevent_stream **at;

	if (s->pair) {
		at = &s->pair->chain[s->index & s->pair->mask];
		while (*at != s)
			at = &(*at)->same;
		*at = s->same;
		if (s->pair == &s->own)
			unlist(&s->own);
		s->pair = NULL;
	}
	if (s->page)
		kevent_pair_put(s->page);
	s->page = NULL;
}

/* The side that connects keeps the last one for its next streams. */
void kevent_pair_put(struct pair *p)
{
	struct pair *other, *next;

	if (--p->refs)
		return;
	if (p->side || p->full) {
		end_page(p);
		return;
	}
	for (other = p->set->pairs; other; other = next) {
		next = other->next;
		if (other != p && other->map && !other->side && !other->refs)
			end_page(other);
	}
}

void kevent_pairs_free(struct kevent_streams *set)
{
	while (set->pairs)
		end_page(set->pairs);
}
