/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Doubly linked lists, for the fallback
 */
#ifndef LIBKEVENT_FB_LIST_H
#define LIBKEVENT_FB_LIST_H

#include <stdbool.h>
#include <stddef.h>

#define fb_container(ptr, type, member) \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))

/* Each @entry that has its @member on the list. The body may not take it off. */
#define fb_list_each(entry, head, type, member)				\
	for (entry = fb_container((head)->next, type, member);		\
	     &entry->member != (head);					\
	     entry = fb_container(entry->member.next, type, member))

/* The head of a list, or a link in one */
struct fb_list {
	struct fb_list	*next;
	struct fb_list	*prev;
};

static inline void fb_list_init(struct fb_list *head)
{
	head->next = head;
	head->prev = head;
}

static inline bool fb_list_empty(const struct fb_list *head)
{
	return head->next == head;
}

static inline void fb_list_add_tail(struct fb_list *link, struct fb_list *head)
{
	link->next = head;
	link->prev = head->prev;
	head->prev->next = link;
	head->prev = link;
}

static inline void fb_list_del(struct fb_list *link)
{
	link->next->prev = link->prev;
	link->prev->next = link->next;
}

#endif /* LIBKEVENT_FB_LIST_H */
