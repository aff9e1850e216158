/* An MCP server on stdin and stdout that costs next to nothing: what is measured is the gateway.
 *
 * Tools: echo {text}, sleep {ms}, blob {kib}, and fillers tool_003... up to ECHO_TOOLS in all.
 * ECHO_NAME is its name, ECHO_ERA=dual makes it answer 2026-07-28 too, ECHO_START_MS is how long
 * it takes to start. Sleeps are timers: no call ever waits for another.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_KIB = 65536, READ_AT_LEAST = 65536 };

typedef struct { const char *at, *end; } Text;                /* a piece of a message, not owned */
typedef struct { double due; char *id; long ms; int modern; } Timer;

static int dual;
static const char *server_name = "echo";

/* -- what goes out: gathered, and written once for all requests that came together ------------ */

static char *out;
static size_t out_used, out_room;

static void put(const char *bytes, size_t count)
{
    while (out_used + count > out_room) {
        out_room = out_room ? out_room * 2 : 65536;
        out = realloc(out, out_room);
    }
    memcpy(out + out_used, bytes, count);
    out_used += count;
}

static void say(const char *words) { put(words, strlen(words)); }
static void say_text(Text text) { put(text.at, text.end - text.at); }

static void flush_out(void)
{
    for (size_t done = 0; done < out_used;) {
        ssize_t count = write(1, out + done, out_used - done);
        if (count >= 0) {
            done += count;
        } else if (errno == EAGAIN) {
            struct pollfd writable = {1, POLLOUT, 0};
            poll(&writable, 1, -1);
        } else if (errno != EINTR) {
            exit(0);
        }
    }
    out_used = 0;
}

/* -- as much JSON as is needed: the raw value of a key of an object --------------------------- */

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')) at++;
    return at;
}

static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end; at++) {
        if (*at == '\\') at++;
        else if (*at == '"') return at + 1;
    }
    return end;
}

static const char *skip_nested(const char *at, const char *end)
{
    int depth = 0;
    while (at < end) {
        if (*at == '"') {
            at = skip_string(at, end);
            continue;
        }
        if (*at == '{' || *at == '[') depth++;
        if ((*at == '}' || *at == ']') && --depth == 0) return at + 1;
        at++;
    }
    return end;
}

static const char *skip_value(const char *at, const char *end)
{
    if (at >= end) return end;
    if (*at == '"') return skip_string(at, end);
    if (*at == '{' || *at == '[') return skip_nested(at, end);
    while (at < end && !strchr(",}] \r", *at)) at++;
    return at;
}

static int get(Text object, const char *key, Text *value)
{
    size_t length = strlen(key);
    const char *end = object.end, *at = skip_space(object.at, end);
    if (at >= end || *at != '{') return 0;
    at = skip_space(at + 1, end);
    while (at < end && *at == '"') {
        const char *name = at + 1, *name_end = skip_string(at, end);
        at = skip_space(name_end, end);
        if (at >= end || *at != ':') return 0;
        at = skip_space(at + 1, end);
        const char *value_end = skip_value(at, end);
        if ((size_t)(name_end - 1 - name) == length && !memcmp(name, key, length)) {
            *value = (Text){at, value_end};
            return 1;
        }
        at = skip_space(value_end, end);
        if (at >= end || *at != ',') return 0;
        at = skip_space(at + 1, end);
    }
    return 0;
}

static int is(Text value, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(value.end - value.at) == length + 2 && !memcmp(value.at + 1, word, length);
}

static long number(Text object, const char *key, long otherwise)
{
    Text value;
    return get(object, key, &value) ? atol(value.at) : otherwise;
}

/* -- answers ---------------------------------------------------------------------------------- */

static void begin(Text id)
{
    say("{\"jsonrpc\":\"2.0\",\"id\":");
    say_text(id);
}

static void begin_result(Text id, int modern)
{
    begin(id);
    say(",\"result\":{");
    if (modern) say("\"resultType\":\"complete\",");
}

static void fail(Text id, int code, const char *message)
{
    char error[200];
    begin(id);
    snprintf(error, sizeof error, ",\"error\":{\"code\":%d,\"message\":\"%s\"}}\n", code, message);
    say(error);
}

static void answer_text(Text id, Text quoted, int modern)
{
    begin_result(id, modern);
    say("\"content\":[{\"type\":\"text\",\"text\":");
    say_text(quoted);
    say("}],\"isError\":false}}\n");
}

static Text literal(const char *words) { return (Text){words, words + strlen(words)}; }

/* -- the tools -------------------------------------------------------------------------------- */

static Timer *timers;
static int timer_count, timer_room;
static Text tools;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static void sleep_then_answer(Text id, long ms, int modern)
{
    if (timer_count == timer_room) {
        timer_room = timer_room ? timer_room * 2 : 64;
        timers = realloc(timers, timer_room * sizeof *timers);
    }
    timers[timer_count++] = (Timer){now() + ms / 1e3, strndup(id.at, id.end - id.at), ms, modern};
}

static int until_next_timer_ms(void)
{
    if (!timer_count) return -1;
    double due = timers[0].due;
    for (int i = 1; i < timer_count; i++) if (timers[i].due < due) due = timers[i].due;
    double left = (due - now()) * 1000;
    return left < 0 ? 0 : (int)(left + 0.999);
}

static void answer_due_timers(void)
{
    double time = now();
    for (int i = 0; i < timer_count;) {
        if (timers[i].due > time) {
            i++;
            continue;
        }
        char words[64];
        snprintf(words, sizeof words, "\"slept %ld\"", timers[i].ms);
        answer_text(literal(timers[i].id), literal(words), timers[i].modern);
        free(timers[i].id);
        timers[i] = timers[--timer_count];
    }
}

static void answer_blob(Text id, long kib, int modern)
{
    static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-+";
    static char *blobs[MOST_KIB];
    if (kib < 0 || kib >= MOST_KIB) kib = 1;
    size_t length = kib * 1024;
    if (!blobs[kib]) {
        char *made = malloc(length + 2);
        for (size_t i = 0; i < length; i++) made[i + 1] = letters[i & 63];
        made[0] = made[length + 1] = '"';
        blobs[kib] = made;
    }
    answer_text(id, (Text){blobs[kib], blobs[kib] + length + 2}, modern);
}

static void describe(const char *name, const char *what, const char *properties, const char *needed)
{
    char tool[1200];
    snprintf(tool, sizeof tool,
             "{\"name\":\"%s\",\"description\":\"%s\",\"inputSchema\":{\"type\":\"object\","
             "\"properties\":{%s},\"required\":[\"%s\"]}}", name, what, properties, needed);
    say(tool);
}

static void describe_tools(int count)
{
    say("[");
    describe("echo", "Returns the given text unchanged.",
             "\"text\":{\"type\":\"string\",\"description\":\"Text to return\"}", "text");
    say(",");
    describe("sleep", "Answers after the given number of milliseconds.",
             "\"ms\":{\"type\":\"integer\",\"description\":\"Milliseconds\"}", "ms");
    say(",");
    describe("blob", "Returns a text of the given number of KiB.",
             "\"kib\":{\"type\":\"integer\",\"description\":\"KiB\"}", "kib");
    for (int i = 3; i < count; i++) {
        char name[32], what[300];
        snprintf(name, sizeof name, "tool_%03d", i);
        snprintf(what, sizeof what,
                 "Filler tool %d: searches the records of the project for entries that match a "
                 "query and returns the best of them in order.", i);
        say(",");
        describe(name, what,
                 "\"query\":{\"type\":\"string\",\"description\":\"What to look for\"},"
                 "\"limit\":{\"type\":\"integer\",\"description\":\"How many entries at most\","
                 "\"default\":10},\"include_archived\":{\"type\":\"boolean\","
                 "\"description\":\"Search archived records too\"}", "query");
    }
    say("]");
    char *kept = malloc(out_used);
    memcpy(kept, out, out_used);
    tools = (Text){kept, kept + out_used};
    out_used = 0;
}

/* -- requests --------------------------------------------------------------------------------- */

static void call(Text id, Text params, int modern)
{
    Text name, arguments = {0, 0}, value;
    if (!get(params, "name", &name)) {
        fail(id, -32602, "no name");
        return;
    }
    get(params, "arguments", &arguments);
    if (is(name, "echo"))
        answer_text(id, get(arguments, "text", &value) ? value : literal("\"\""), modern);
    else if (is(name, "sleep")) sleep_then_answer(id, number(arguments, "ms", 0), modern);
    else if (is(name, "blob")) answer_blob(id, number(arguments, "kib", 1), modern);
    else if (name.end - name.at > 6 && !memcmp(name.at, "\"tool_", 6))
        answer_text(id, literal("\"ok\""), modern);
    else fail(id, -32602, "Unknown tool");
}

static void list(Text id, int modern)
{
    begin_result(id, modern);
    say("\"tools\":");
    say_text(tools);
    if (modern) say(",\"ttlMs\":60000,\"cacheScope\":\"public\"");
    say("}}\n");
}

static int knows(Text revision)
{
    return is(revision, "2024-11-05") || is(revision, "2025-03-26") || is(revision, "2025-06-18")
        || is(revision, "2025-11-25");
}

static void initialize(Text id, Text params)
{
    Text revision;
    begin(id);
    say(",\"result\":{\"protocolVersion\":");
    say_text(get(params, "protocolVersion", &revision) && knows(revision)
             ? revision : literal("\"2025-06-18\""));
    say(",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"");
    say(server_name);
    say("\",\"version\":\"1.0.0\"}}}\n");
}

static void discover(Text id)
{
    begin_result(id, 1);
    say("\"supportedVersions\":[\"2026-07-28\",\"2025-11-25\",\"2025-06-18\"],\"capabilities\":"
        "{\"tools\":{}},\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{\"name\":\"");
    say(server_name);
    say("\",\"version\":\"1.0.0\"}},\"ttlMs\":60000,\"cacheScope\":\"public\"}}\n");
}

static void serve(Text line)
{
    static const char mark[] = "io.modelcontextprotocol/protocolVersion";
    Text id, method, params = {0, 0};
    if (!get(line, "id", &id) || !get(line, "method", &method)) return;
    int has_params = get(line, "params", &params);
    int modern = dual && has_params
        && memmem(params.at, params.end - params.at, mark, sizeof mark - 1) != NULL;
    if (is(method, "tools/call")) call(id, params, modern);
    else if (is(method, "tools/list")) list(id, modern);
    else if (is(method, "initialize")) initialize(id, params);
    else if (is(method, "ping")) {
        begin(id);
        say(",\"result\":{}}\n");
    }
    else if (dual && is(method, "server/discover")) discover(id);
    else fail(id, -32601, "Method not found");
}

static void serve_lines(void)
{
    size_t room = 1 << 18, used = 0;
    char *in = malloc(room);
    for (;;) {
        struct pollfd readable = {0, POLLIN, 0};
        int ready = poll(&readable, 1, until_next_timer_ms());
        answer_due_timers();
        if (ready > 0) {
            if (room - used < READ_AT_LEAST) in = realloc(in, room *= 2);
            ssize_t count = read(0, in + used, room - used);
            if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) return;
            char *unseen = in + used, *line = in, *newline;
            used += count > 0 ? count : 0;
            while ((newline = memchr(unseen, '\n', in + used - unseen))) {
                serve((Text){line, newline});
                line = unseen = newline + 1;
            }
            used -= line - in;
            memmove(in, line, used);
        }
        flush_out();
    }
}

int main(void)
{
    const char *count = getenv("ECHO_TOOLS"), *name = getenv("ECHO_NAME"), *era = getenv("ECHO_ERA");
    const char *delay = getenv("ECHO_START_MS");
    if (name) server_name = name;
    dual = era && !strcmp(era, "dual");
    if (delay) poll(NULL, 0, atoi(delay));
    describe_tools(count ? atoi(count) : 3);
    serve_lines();
    return 0;
}
