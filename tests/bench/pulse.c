/* pulse: a small streaming server of known schedule, for bench rows beyond what Python can send.
 *
 * Invariant: a chunk's stamp is CLOCK_MONOTONIC ns read just before the send() of its last byte; stamps
 * live in memory touched before the window. Build: cc -O2 -Wall -Wextra -o pulse pulse.c
 *
 * Any POST is answered with a streamed completion shaped as vLLM 0.29.0 (chat shape under a path that
 * holds "/chat/"). Its answers are synthetic: no model. GET /truth gives "id t0 t1 ..." lines,
 * GET /truth/summary the server's own lateness, POST /truth/reset forgets both.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "pulse_heap.h"
#include "pulse_text.h"

enum { ID_BYTES = 64, HEAD_BYTES = 512, MAX_TOKENS_A_CHUNK = 64 };
enum { SPIN_AHEAD_NS = 50000 };

struct conn {
    struct timed timer; /* first: a member of the heap is its connection */
    int fd, streaming, tail, close_after, chat;
    uint32_t generation;           /* the order of arrival: sets the phase */
    long chunk, chunks, stamp_at;  /* stamp_at < 0: no room was left for this request */
    struct text in, out;           /* out: bytes of a plain answer, or of a send cut short */
    size_t out_at;
    struct text event[KINDS], end;
};

struct request { char id[ID_BYTES]; long at, count; };

static struct conn *conns[MAX_FD];
static int64_t *sent_ns, *late_ns;
static struct request *requests;
static long stamps_used, stamps_room = 4L << 20, requests_n, requests_room = 1L << 18, dropped;
static int64_t gap_ns = 20000000, ttft_ns = 20000000, tail_ns;
static long fixed_chunks, tokens_a_chunk = 1;
static int lockstep, spin, epoll_fd;
static uint32_t accepted;
static volatile sig_atomic_t stopping;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void on_signal(int number) { (void)number; stopping = 1; }

static void *touched(size_t bytes)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
    return must(mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0));
}

static void plain(struct conn *c, const char *kind, const char *content, size_t n)
{
    say(&c->out, "HTTP/1.1 200 OK\r\nserver: pulse\r\ncontent-length: %zu\r\ncontent-type: %s\r\n%s\r\n", n,
        kind, c->close_after ? "connection: close\r\n" : "");
    append(&c->out, content, n);
}

/* ---- truth ---- */
static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void truth(struct conn *c)
{
    struct text t = {0};
    for (long r = 0; r < requests_n; r++) {
        say(&t, "%s", requests[r].id);
        for (long i = 0; i < requests[r].count; i++)
            say(&t, " %lld", (long long)sent_ns[requests[r].at + i]);
        say(&t, "\n");
    }
    plain(c, "text/plain", t.at ? t.at : "", t.len);
    free(t.at);
}

static void summary(struct conn *c)
{
    char body[512];
    long n = 0;
    int64_t *late = must(malloc((size_t)(stamps_used + 1) * sizeof *late)), first = INT64_MAX, last = 0;
    for (long r = 0; r < requests_n; r++)
        for (long i = requests[r].at; i < requests[r].at + requests[r].count; i++) {
            late[n++] = late_ns[i];
            if (sent_ns[i] < first) first = sent_ns[i];
            if (sent_ns[i] > last) last = sent_ns[i];
        }
    qsort(late, (size_t)n, sizeof *late, by_value);
    int64_t span = n ? last - first : 0;
    int m = snprintf(body, sizeof body,
        "{\"synthetic\":true,\"requests\":%ld,\"dropped\":%ld,\"chunks\":%ld,\"span_ns\":%lld,\"chunks_per_s\":"
        "%lld,\"late_p50_ns\":%lld,\"late_p99_ns\":%lld,\"late_max_ns\":%lld}", requests_n, dropped, n,
        (long long)span, span ? (long long)(n / (span / 1e9)) : 0, n ? (long long)late[(n - 1) / 2] : 0,
        n ? (long long)late[(n - 1) * 99 / 100] : 0, n ? (long long)late[n - 1] : 0);
    plain(c, "application/json", body, (size_t)m);
    free(late);
}

static void forget(void)
{
    stamps_used = requests_n = dropped = 0;
    for (int fd = 0; fd < MAX_FD; fd++)
        if (conns[fd]) conns[fd]->stamp_at = -1;
}

/* ---- connections ---- */
static void watch(struct conn *c, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.fd = c->fd};
    epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &e);
}

static void drop(struct conn *c)
{
    unschedule(&c->timer);
    conns[c->fd] = NULL;
    close(c->fd);
    free(c->in.at); free(c->out.at); free(c->end.at);
    for (int kind = 0; kind < KINDS; kind++) free(c->event[kind].at);
    free(c);
}

/* Send as much as the socket takes; 1 all, 0 blocked (the rest is kept), -1 gone. */
static int push(struct conn *c, const char *bytes, size_t n)
{
    ssize_t sent = send(c->fd, bytes, n, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) { drop(c); return -1; }
    if (sent == (ssize_t)n) return 1;
    if (sent < 0) sent = 0;
    if (bytes != c->out.at + c->out_at) {
        c->out.len = c->out_at = 0;
        append(&c->out, bytes + sent, n - (size_t)sent);
    } else c->out_at += (size_t)sent;
    watch(c, EPOLLIN | EPOLLOUT);
    return 0;
}

static void take(struct conn *c);

static void sent_chunk(struct conn *c, int64_t stamp)
{
    if (c->stamp_at >= 0) {
        struct request *r = &requests[c->stamp_at];
        sent_ns[r->at + c->chunk] = stamp;
        late_ns[r->at + c->chunk] = stamp - c->timer.due;
        r->count = c->chunk + 1;
    }
    c->chunk++;
}

static void finish(struct conn *c)
{
    c->streaming = c->tail = 0;
    if (c->close_after) { drop(c); return; }
    if (c->in.len) take(c);
}

static void fire(struct conn *c)
{
    if (!c->tail) {
        int last = c->chunk == c->chunks - 1;
        int kind = c->chunk == 0 ? (last ? ONLY : FIRST) : last ? LAST : MIDDLE;
        int64_t stamp = now_ns();
        int done = push(c, c->event[kind].at, c->event[kind].len);
        if (done < 0) return;
        if (!done) { unschedule(&c->timer); return; }
        sent_chunk(c, stamp);
        if (c->chunk < c->chunks) { schedule(&c->timer, c->timer.due + gap_ns); return; }
        c->tail = 1;
        if (tail_ns) { schedule(&c->timer, c->timer.due + tail_ns); return; }
    }
    unschedule(&c->timer);
    if (push(c, c->end.at, c->end.len) == 1) finish(c);
}

static void on_writable(struct conn *c)
{
    int64_t stamp = now_ns();
    if (push(c, c->out.at + c->out_at, c->out.len - c->out_at) != 1) return;
    c->out.len = c->out_at = 0;
    watch(c, EPOLLIN);
    if (!c->streaming || c->tail) { finish(c); return; }
    if (c->chunk >= 0) sent_chunk(c, stamp);
    else c->chunk = 0; /* it was the head that was cut short */
    if (c->chunk < c->chunks) schedule(&c->timer, c->timer.due + (c->chunk ? gap_ns : 0));
    else { c->tail = 1; schedule(&c->timer, c->timer.due + tail_ns); }
}

static void start(struct conn *c, const char *id, long tokens)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nserver: pulse\r\ncontent-type: text/event-stream; "
                               "charset=utf-8\r\n%stransfer-encoding: chunked\r\n\r\n";
    char bytes[HEAD_BYTES];
    c->chunks = fixed_chunks ? fixed_chunks : (tokens + tokens_a_chunk - 1) / tokens_a_chunk;
    encode(c->event, &c->end, c->chat, id, c->chunks, tokens_a_chunk);
    c->streaming = 1;
    c->stamp_at = -1;
    if (stamps_used + c->chunks <= stamps_room && requests_n < requests_room) {
        c->stamp_at = requests_n++;
        struct request *r = &requests[c->stamp_at];
        snprintf(r->id, sizeof r->id, "%s", id);
        r->at = stamps_used;
        r->count = 0;
        stamps_used += c->chunks;
    } else dropped++;
    /* Phases: all alike, or spread evenly by the golden ratio whatever the number of streams. */
    int64_t phase = lockstep ? 0 : (int64_t)((uint32_t)(c->generation * 2654435769u) / 4294967296.0 * gap_ns);
    int64_t due = now_ns() + ttft_ns;
    due += (gap_ns - (due - phase) % gap_ns) % gap_ns;
    int n = snprintf(bytes, sizeof bytes, head, c->close_after ? "connection: close\r\n" : "");
    c->timer.due = due;
    c->chunk = -1;
    if (push(c, bytes, (size_t)n) == 1) { c->chunk = 0; schedule(&c->timer, due); }
}

static void field(const char *head, const char *name, char *value, size_t room)
{
    const char *at = strcasestr(head, name);
    size_t n = 0;
    if (at) for (at += strlen(name); *at == ' '; at++) {}
    while (at && n + 1 < room && at[n] && at[n] != '\r') n++;
    if (at) memcpy(value, at, n);
    value[n] = 0;
}

/* Answer the first request in c->in if it is complete. */
static void take(struct conn *c)
{
    char *head_end = c->in.at ? strstr(c->in.at, "\r\n\r\n") : NULL;
    if (c->streaming || c->out.len || !head_end) return;
    char length[24], id[ID_BYTES], ending[16];
    head_end[2] = 0;
    field(c->in.at, "\r\ncontent-length:", length, sizeof length);
    field(c->in.at, "\r\nx-request-id:", id, sizeof id);
    field(c->in.at, "\r\nconnection:", ending, sizeof ending);
    head_end[2] = '\r';
    size_t used = (size_t)(head_end - c->in.at) + 4 + strtoul(length, NULL, 10);
    if (c->in.len < used) return;
    char *line_end = strstr(c->in.at, "\r\n");
    *line_end = 0;
    char kept = c->in.at[used];
    c->in.at[used] = 0;
    char *wish = strstr(head_end + 4, "\"max_tokens\":");
    if (!wish) wish = strstr(head_end + 4, "\"max_completion_tokens\":");
    long tokens = wish ? strtol(strchr(wish, ':') + 1, NULL, 10) : 16;
    c->in.at[used] = kept;
    int post = strncmp(c->in.at, "POST ", 5) == 0;
    char path[64];
    snprintf(path, sizeof path, "%.*s", (int)strcspn(c->in.at + 4 + post, " ?"), c->in.at + 4 + post);
    if (!id[0]) snprintf(id, sizeof id, "pulse%ld", requests_n);
    c->close_after = strcasecmp(ending, "close") == 0;
    c->chat = strstr(path, "/chat/") != NULL;
    memmove(c->in.at, c->in.at + used, c->in.len - used + 1);
    c->in.len -= used;
    static const char models[] = "{\"object\":\"list\",\"data\":[{\"id\":\"synthetic\",\"object\":\"model\","
        "\"created\":0,\"owned_by\":\"pulse\",\"root\":\"synthetic\",\"parent\":null,\"max_model_len\":1048576}]}";
    if (post && strcmp(path, "/truth/reset")) { start(c, id, tokens > 0 ? tokens : 1); return; }
    c->out.len = c->out_at = 0;
    if (post) { forget(); plain(c, "application/json", "{\"success\":true}", 16); }
    else if (!strcmp(path, "/truth")) truth(c);
    else if (!strcmp(path, "/truth/summary")) summary(c);
    else if (!strcmp(path, "/v1/models")) plain(c, "application/json", models, sizeof models - 1);
    else if (!strcmp(path, "/version")) plain(c, "application/json", "{\"version\":\"pulse+synthetic\"}", 28);
    else if (!strcmp(path, "/metrics")) {
        char body[256];
        long tokens_sent = 0;
        for (long r = 0; r < requests_n; r++) tokens_sent += requests[r].count * tokens_a_chunk;
        int n = snprintf(body, sizeof body, "# TYPE vllm:generation_tokens_total counter\n"
            "vllm:generation_tokens_total{engine=\"0\",model_name=\"synthetic\"} %ld.0\n", tokens_sent);
        plain(c, "text/plain; version=1.0.0; charset=utf-8", body, (size_t)n);
    } else plain(c, "application/json", "", 0); /* /health */
    if (push(c, c->out.at, c->out.len) == 1) { c->out.len = c->out_at = 0; finish(c); }
}

static void on_readable(struct conn *c)
{
    char bytes[65536];
    ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) { drop(c); return; }
    append(&c->in, bytes, (size_t)n);
    take(c);
}

static void on_connection(int listener)
{
    for (int fd, one = 1; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
        if (fd >= MAX_FD) { close(fd); continue; }
        struct conn *c = must(calloc(1, sizeof *c));
        c->fd = fd;
        c->timer.heap_at = -1;
        c->stamp_at = -1;
        c->generation = accepted++;
        conns[fd] = c;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e);
    }
}

static void poll_sockets(int listener)
{
    struct epoll_event events[256];
    int n = epoll_wait(epoll_fd, events, 256, 0);
    for (int i = 0; i < n; i++) {
        int fd = events[i].data.fd;
        if (fd == listener) { on_connection(listener); continue; }
        if (conns[fd] && events[i].events & EPOLLOUT) on_writable(conns[fd]);
        if (conns[fd] && events[i].events & ~(uint32_t)EPOLLOUT) on_readable(conns[fd]);
    }
}

static void serve(int listener)
{
    while (!stopping) {
        int64_t now = now_ns(), wait = heap_n ? heap[0]->due - now : 1000000000;
        for (int batch = 0; batch < 32 && heap_n && heap[0]->due <= now; batch++) {
            fire((struct conn *)heap[0]);
            now = now_ns();
        }
        if (!spin && (!heap_n || wait > SPIN_AHEAD_NS)) {
            struct pollfd waiting = {.fd = epoll_fd, .events = POLLIN};
            int64_t sleep = wait - SPIN_AHEAD_NS;
            struct timespec t = {sleep / 1000000000, sleep % 1000000000};
            ppoll(&waiting, 1, &t, NULL);
        }
        poll_sockets(listener);
    }
}

int main(int argc, char **argv)
{
    int port = 8000, option, one = 1;
    while ((option = getopt(argc, argv, "p:g:f:t:n:k:m:s:w")) != -1) switch (option) {
        case 'p': port = atoi(optarg); break;
        case 'g': gap_ns = atoll(optarg); break;
        case 'f': ttft_ns = atoll(optarg); break;
        case 't': tail_ns = atoll(optarg); break;
        case 'n': fixed_chunks = atol(optarg); break;
        case 'k': tokens_a_chunk = atol(optarg); break;
        case 'm': lockstep = !strcmp(optarg, "lockstep"); break;
        case 's': stamps_room = atol(optarg); break;
        case 'w': spin = 1; break;
        default:
            fputs("pulse [-p PORT] [-g GAP_NS] [-f FIRST_NS] [-t TAIL_NS] [-n CHUNKS] [-k TOKENS_A_CHUNK]\n"
                  "      [-m staggered|lockstep] [-s STAMPS] [-w (spin)]\n", stderr);
            return 2;
    }
    if (gap_ns < 1 || tokens_a_chunk < 1 || tokens_a_chunk > MAX_TOKENS_A_CHUNK || stamps_room < 1) {
        fputs("pulse: gap, tokens a chunk (at most 64) and stamps are at least 1\n", stderr);
        return 2;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    sent_ns = touched((size_t)stamps_room * sizeof *sent_ns);
    late_ns = touched((size_t)stamps_room * sizeof *late_ns);
    requests = touched((size_t)requests_room * sizeof *requests);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 4096)) {
        perror("pulse: listen");
        return 1;
    }
    getsockname(listener, (struct sockaddr *)&address, &size);
    epoll_fd = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &e);
    printf("pulse (synthetic) on http://127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
    serve(listener);
    return 0;
}
