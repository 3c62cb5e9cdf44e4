/* Drives hiredis (the line protocol: clients/README.md). A context with an error
   is of no more use, so that a new one is made after a failure. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 64 };

static char **address;
static redisContext *context;

static void fail(const char *text) {
    printf("err ");
    for (; *text; text++) putchar(*text == '\r' || *text == '\n' ? ' ' : *text);
    putchar('\n');
}

static int connected(void) {
    if (context && !context->err) return 1;
    if (context) redisFree(context);
    context = redisConnect(address[1], atoi(address[2]));
    if (!context || context->err || !*address[4]) return context && !context->err;
    redisReply *reply = *address[3] ? redisCommand(context, "AUTH %s %s", address[3], address[4])
                                    : redisCommand(context, "AUTH %s", address[4]);
    int ok = reply && reply->type != REDIS_REPLY_ERROR;
    if (reply && !ok) {
        context->err = REDIS_ERR_OTHER;
        snprintf(context->errstr, sizeof context->errstr, "%s", reply->str);
    }
    if (reply) freeReplyObject(reply);
    return ok;
}

static void print(const redisReply *reply) {
    if (reply->type == REDIS_REPLY_INTEGER) printf(" %lld", reply->integer);
    else if (reply->type == REDIS_REPLY_ARRAY)
        for (size_t i = 0; i < reply->elements; i++) print(reply->element[i]);
    else printf(" %.*s", (int)strcspn(reply->str ? reply->str : "nil", "\r\n"), reply->str ? reply->str : "nil");
}

static void call(int argc, const char **argv) {
    redisReply *reply = connected() ? redisCommandArgv(context, argc, argv, NULL) : NULL;
    if (!reply) {
        fail(context ? context->errstr : "no memory");
        return;
    }
    if (reply->type == REDIS_REPLY_ERROR) fail(reply->str);
    else {
        printf("ok");
        print(reply);
        putchar('\n');
    }
    freeReplyObject(reply);
}

/* Allowed, denied and errors of n calls of CL.THROTTLE in one pipeline. */
static void pipeline(int n, int argc, const char **argv) {
    int count[3] = {0};
    if (!connected()) {
        fail(context ? context->errstr : "no memory");
        return;
    }
    for (int i = 0; i < n; i++) redisAppendCommandArgv(context, argc, argv, NULL);
    for (int i = 0; i < n; i++) {
        redisReply *reply = NULL;
        if (redisGetReply(context, (void **)&reply) != REDIS_OK) {
            fail(context->errstr);
            return;
        }
        int good = reply->type == REDIS_REPLY_ARRAY && reply->elements == 5;
        count[!good ? 2 : reply->element[0]->integer == 0 ? 0 : 1]++;
        freeReplyObject(reply);
    }
    printf("ok %d %d %d\n", count[0], count[1], count[2]);
}

int main(int argc, char **argv) {
    static char line[65536];
    if (argc != 5) {
        fprintf(stderr, "usage: %s HOST PORT USER PASSWORD\n", argv[0]);
        return 2;
    }
    address = argv;
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin)) {
        const char *words[MAX_WORDS];
        int n = 0;
        for (char *word = strtok(line, " \r\n"); word && n < MAX_WORDS; word = strtok(NULL, " \r\n")) words[n++] = word;
        if (n > 1 && !strcmp(words[0], "call")) call(n - 1, words + 1);
        else if (n > 2 && !strcmp(words[0], "pipe")) pipeline(atoi(words[1]), n - 2, words + 2);
        else if (n && !strcmp(words[0], "version")) printf("ok %d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
        else break;
    }
    return 0;
}
