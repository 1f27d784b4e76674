/* SPDX-License-Identifier: MIT */
/* cppcheck.h - macros of headers that cppcheck does not read, and plain meanings for what its 2.10 does not parse. */
#define LIST_HEAD(name, type) struct name { struct type *first; }
#define SLIST_HEAD(name, type) struct name { struct type *first; }
#define TAILQ_HEAD(name, type) struct name { struct type *first, **last; }
#define STAILQ_HEAD(name, type) struct name { struct type *first, **last; }
#define LIST_ENTRY(type) struct { struct type *next, **prev; }
#define SLIST_ENTRY(type) struct { struct type *next; }
#define TAILQ_ENTRY(type) struct { struct type *next, **prev; }
#define STAILQ_ENTRY(type) struct { struct type *next; }
#define LIST_FOREACH(item, head, field) for ((item) = (head)->first; (item); (item) = (item)->field.next)
#define SLIST_FOREACH LIST_FOREACH
#define TAILQ_FOREACH LIST_FOREACH
#define STAILQ_FOREACH LIST_FOREACH
#define json_array_foreach(array, i, item) \
	for ((i) = 0; (i) < json_array_size(array) && ((item) = json_array_get(array, i)); (i)++)
#define json_object_foreach(object, key, item)                                               \
	for ((key) = json_object_iter_key(json_object_iter(object));                         \
	     (key) && ((item) = json_object_iter_value(json_object_key_to_iter(key)));       \
	     (key) = json_object_iter_key(json_object_iter_next(object, json_object_key_to_iter(key))))
