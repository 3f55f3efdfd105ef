/* The due times of pulse.c: a binary heap that knows where each member stands.
 *
 * Invariant: heap_at is the member's place, -1 outside; heap[0] is due first.
 */
#include <stdint.h>

enum { MAX_FD = 65536 };

struct timed { int64_t due; int heap_at; };

static struct timed *heap[MAX_FD];
static int heap_n;

static void place(int i, struct timed *c) { heap[i] = c; c->heap_at = i; }

static void sift_up(int i, struct timed *c)
{
    for (; i > 0 && heap[(i - 1) / 2]->due > c->due; i = (i - 1) / 2) place(i, heap[(i - 1) / 2]);
    place(i, c);
}

static void sift_down(int i, struct timed *c)
{
    for (int child; (child = 2 * i + 1) < heap_n; i = child) {
        if (child + 1 < heap_n && heap[child + 1]->due < heap[child]->due) child++;
        if (heap[child]->due >= c->due) break;
        place(i, heap[child]);
    }
    place(i, c);
}

static void schedule(struct timed *c, int64_t due)
{
    int later = c->heap_at >= 0 && due >= c->due;
    c->due = due;
    if (c->heap_at < 0) sift_up(heap_n++, c);
    else if (later) sift_down(c->heap_at, c);
    else sift_up(c->heap_at, c);
}

static void unschedule(struct timed *c)
{
    int i = c->heap_at;
    if (i < 0) return;
    c->heap_at = -1;
    struct timed *moved = heap[--heap_n];
    if (moved == c) return;
    sift_up(i, moved);
    sift_down(moved->heap_at, moved);
}
