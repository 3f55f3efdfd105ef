/* The bytes that pulse.c sends: growing texts and the events of a response shaped as vLLM 0.29.0's.
 *
 * Invariant: a text ends with a NUL that `len` does not count.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { FIRST, MIDDLE, LAST, ONLY, KINDS };

struct text { char *at; size_t len, room; };

static void *must(void *memory)
{
    if (memory == NULL || memory == MAP_FAILED) { fputs("pulse: out of memory\n", stderr); exit(1); }
    return memory;
}

static void reserve(struct text *t, size_t more)
{
    if (t->len + more + 1 <= t->room) return;
    t->room = (t->len + more + 1) * 2;
    t->at = must(realloc(t->at, t->room));
}

static void append(struct text *t, const char *bytes, size_t n)
{
    reserve(t, n);
    memcpy(t->at + t->len, bytes, n);
    t->len += n;
    t->at[t->len] = 0;
}

__attribute__((format(printf, 2, 3))) static void say(struct text *t, const char *form, ...)
{
    va_list args;
    va_start(args, form);
    reserve(t, 1024);
    int n = vsnprintf(t->at + t->len, 1024, form, args);
    va_end(args);
    t->len += n < 1024 ? (size_t)n : 1023;
}

static void chunked(struct text *t, const char *json)
{
    say(t, "%zx\r\ndata: ", strlen(json) + 8);
    append(t, json, strlen(json));
    append(t, "\n\n\r\n", 4);
}

/* The events of one response: first, middle, last, only; and its end (usage, [DONE], last chunk). */
static void encode(struct text *event, struct text *end, int chat, const char *id, long chunks, long each)
{
    long tokens = chunks * each;
    struct text words = {0}, ids = {0}, json = {0}, opening = {0};
    for (long i = 0; i < each; i++) {
        say(&words, " pulse");
        say(&ids, "%s%ld", i ? "," : "", 1000 + i);
    }
    say(&opening, "{\"id\":\"%s%s\",\"object\":\"%s\",\"created\":%ld,\"model\":\"synthetic\",\"choices\":[",
        chat ? "chatcmpl-" : "cmpl-", id, chat ? "chat.completion.chunk" : "text_completion",
        (long)time(NULL));
    for (int kind = 0; kind < KINDS; kind++) {
        const char *finish = kind >= LAST ? "\"length\"" : "null";
        const char *prompt = kind == FIRST || kind == ONLY ? "[1,2,3]" : "null";
        json.len = event[kind].len = 0;
        append(&json, opening.at, opening.len);
        if (chat)
            say(&json, "{\"index\":0,\"delta\":{\"content\":\"%s\"},\"logprobs\":null,\"finish_reason\":%s,"
                "%s\"token_ids\":[%s]}]}", words.at, finish,
                kind >= LAST ? "\"stop_reason\":null," : "", ids.at);
        else
            say(&json, "{\"index\":0,\"text\":\"%s\",\"logprobs\":null,\"finish_reason\":%s,\"stop_reason\":"
                "null,\"prompt_token_ids\":%s,\"token_ids\":[%s]}]}", words.at, finish, prompt, ids.at);
        chunked(&event[kind], json.at);
    }
    json.len = end->len = 0;
    append(&json, opening.at, opening.len);
    say(&json, "],\"usage\":{\"prompt_tokens\":3,\"total_tokens\":%ld,\"completion_tokens\":%ld},"
        "\"system_fingerprint\":\"pulse-synthetic\"}", tokens + 3, tokens);
    chunked(end, json.at);
    append(end, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n", 24);
    free(words.at); free(ids.at); free(json.at); free(opening.at);
}
