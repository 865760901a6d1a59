// The hook of the benchmarks in C, without a library: it counts the messages of an
// event by role and finds the last one of the user. Nothing is decoded that is not
// looked at, and every count and length is checked against what is left. The index that
// the host sends says how long each message is and of which role, and the one that is
// wanted is read from the host; where an event has messages they are read one after the
// other.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define IMPORT(module, name) __attribute__((import_module(module), import_name(name)))
#define EXPORT(name) __attribute__((export_name(name)))

IMPORT("extism:host/env", "input_length") u64 input_length(void);
IMPORT("extism:host/env", "alloc") u64 kernel_alloc(u64 n);
IMPORT("extism:host/env", "store_u8") void store_u8(u64 at, u32 v);
IMPORT("extism:host/env", "error_set") void error_set(u64 at);
IMPORT("mortise:host/1", "input_read") void input_read(void *to);
IMPORT("mortise:host/1", "messages_read") u64 messages_read(u32 from, u32 to, void *at, u32 n);
IMPORT("mortise:host/1", "output_write") void output_write(const void *from, u32 n);

#define MAX_INPUT (1 << 20)
// What is written stands together: the host puts fewer pages back after a call.
static struct {
  u8 output[512], input[MAX_INPUT];
} memory;
#define output memory.output
#define input memory.input

static int failed(const char *text) {
  u32 n = 0;
  while (text[n]) n++;
  u64 at = kernel_alloc(n);
  for (u32 i = 0; at && i < n; i++) store_u8(at + i, (u8)text[i]);
  error_set(at);
  return 1;
}

// What reads is inlined, so that a reader stands in locals and not in memory.
#define INLINE static inline __attribute__((always_inline))

// A reader of MessagePack. After an error every read gives nothing.
typedef struct {
  const u8 *at, *end;
  int bad;
} reader;

typedef struct {
  const u8 *at;
  u32 n;
} text;

INLINE u64 fail(reader *r) {
  r->bad = 1;
  r->at = r->end;
  return 0;
}

INLINE u32 left(const reader *r) { return (u32)(r->end - r->at); }

INLINE u64 number(reader *r, u32 n) {
  if (left(r) < n) return fail(r);
  u64 v = 0;
  while (n--) v = v << 8 | *r->at++;
  return v;
}

// The rest of a header: the length that belongs to code c, whose forms of 8, 16 and
// 32 bits are given; 0 stands for a form that there is not.
INLINE u64 length(reader *r, u8 c, u8 c8, u8 c16, u8 c32) {
  if (c8 && c == c8) return number(r, 1);
  if (c == c16) return number(r, 2);
  if (c == c32) return number(r, 4);
  return fail(r);
}

INLINE u32 open(reader *r, u8 fix, u8 c16, u32 each) {
  u8 c = (u8)number(r, 1);
  u64 n = (c & 0xf0) == fix ? c & 0x0f : length(r, c, 0, c16, c16 + 1);
  return n * each > left(r) ? (u32)fail(r) : (u32)n;
}

INLINE u32 open_map(reader *r) { return open(r, 0x80, 0xde, 2); }
INLINE u32 open_array(reader *r) { return open(r, 0x90, 0xdc, 1); }

// The next n bytes.
INLINE text read_bytes(reader *r, u64 n) {
  if (n > left(r)) n = fail(r);
  text t = {r->at, (u32)n};
  r->at += n;
  return t;
}

INLINE text read_binary(reader *r) {
  u8 c = (u8)number(r, 1);
  return read_bytes(r, length(r, c, 0xc4, 0xc5, 0xc6));
}

INLINE text read_text(reader *r) {
  u8 c = (u8)number(r, 1);
  return read_bytes(r, (c & 0xe0) == 0xa0 ? c & 0x1f : length(r, c, 0xd9, 0xda, 0xdb));
}

INLINE int is_text(u8 c) { return (c & 0xe0) == 0xa0 || (c >= 0xd9 && c <= 0xdb); }

// past returns where the value at at ends, or 0. Its memory does not depend on how deep it nests.
static const u8 *past(const u8 *at, const u8 *end) {
  reader r = {at, end, 0};
  for (u64 values = 1; values && !r.bad; values--) {
    if (r.at == r.end) {
      fail(&r);
      break;
    }
    u8 c = *r.at;
    if (is_text(c)) {
      read_text(&r);
    } else if ((c & 0xf0) == 0x80 || c == 0xde || c == 0xdf) {
      values += 2 * (u64)open_map(&r);
    } else if ((c & 0xf0) == 0x90 || c == 0xdc || c == 0xdd) {
      values += open_array(&r);
    } else if (c <= 0x7f || c >= 0xe0 || c == 0xc0 || c == 0xc2 || c == 0xc3) {
      r.at++;
    } else {
      r.at++;
      u64 n = 0;
      if (c >= 0xc4 && c <= 0xc6) n = length(&r, c, 0xc4, 0xc5, 0xc6);
      else if (c == 0xca) n = 4;
      else if (c == 0xcb) n = 8;
      else if (c >= 0xcc && c <= 0xd3) n = 1u << (c & 3);
      else fail(&r);
      if (n > left(&r)) n = fail(&r);
      r.at += n;
    }
  }
  return r.bad ? 0 : r.at;
}

// skip passes over one value.
INLINE void skip(reader *r) {
  const u8 *end = past(r->at, r->end);
  if (end) r->at = end;
  else fail(r);
}

// same compares a text with a literal, whose length is known here.
#define same(t, literal) equals(t, literal, sizeof literal - 1)

INLINE int equals(text t, const char *want, u32 n) {
  if (t.n != n) return 0;
  for (u32 i = 0; i < n; i++)
    if (t.at[i] != (u8)want[i]) return 0;
  return 1;
}

// Roles as the index names them.
enum { OTHER, SYSTEM, USER, ASSISTANT, TOOL, ROLES };

typedef struct {
  u32 roles[ROLES];
  text last;      // the id of the last message of the user
  reader content; // its content, unread
  u32 size;       // of its text, if the content was read
} counts;

// text_size adds up the text blocks of a message.
INLINE u32 text_size(reader *r) {
  u32 size = 0;
  for (u32 blocks = open_array(r); blocks && !r->bad; blocks--) {
    u32 n = 0;
    int is = 0;
    for (u32 fields = open_map(r); fields && !r->bad; fields--) {
      text key = read_text(r);
      if (same(key, "type")) is = same(read_text(r), "text");
      else if (same(key, "text")) n = read_text(r).n;
      else skip(r);
    }
    if (is) size += n;
  }
  return size;
}

// read_fields reads a message, of which c gets id and content, and returns its role. If it is known to be
// the one that is wanted, its text is counted on the way.
INLINE u32 read_fields(reader *r, counts *c, int wanted) {
  text id = {0, 0}, role = {0, 0};
  reader content = {0, 0, 0};
  for (u32 fields = open_map(r); fields && !r->bad; fields--) {
    text key = read_text(r);
    if (same(key, "id")) {
      id = read_text(r);
    } else if (same(key, "role")) {
      role = read_text(r);
    } else {
      int is = same(key, "content");
      if (is) content = *r;
      if (is && wanted) c->size = text_size(r);
      else skip(r);
    }
  }
  if (same(role, "user")) {
    c->last = id;
    c->content = content;
    return USER;
  }
  if (same(role, "assistant")) return ASSISTANT;
  if (same(role, "tool")) return TOOL;
  return same(role, "system") ? SYSTEM : OTHER;
}

// What the index says of a message.
typedef struct {
  u32 length;
  u8 role, unused[3];
} mark;

// mark_at reads a mark, which need not be aligned.
INLINE mark mark_at(text index, u32 i) {
  mark m;
  __builtin_memcpy(&m, index.at + i * sizeof m, sizeof m);
  return m;
}

// indexed counts messages by what the index says, and reads the last one of the user,
// for which it asks the host. It returns 0 when the index is not that of its messages, or there is no room.
INLINE int indexed(text index, u8 *room, counts *c, reader *r) {
  if (index.n % sizeof(mark)) return 0;
  u32 n = index.n / sizeof(mark), kinds[ROLES] = {0}, unknown = 0, last = n;
  for (u32 i = 0; i < n; i++) { // without branches, so that it becomes vectors
    u8 role = mark_at(index, i).role;
    for (u32 kind = 0; kind < ROLES; kind++) kinds[kind] += role == kind;
    unknown += role >= ROLES;
  }
  if (unknown) return 0;
  for (u32 kind = 0; kind < ROLES; kind++) c->roles[kind] = kinds[kind];
  if (!kinds[USER]) return 1;
  while (mark_at(index, --last).role != USER) {
  }
  u32 length = mark_at(index, last).length;
  if (length > (u32)(input + MAX_INPUT - room)) return 0;
  if (messages_read(last, last + 1, room, length) != length) return 0;
  reader message = {room, room + length, 0};
  read_fields(&message, c, 1);
  if (message.bad) fail(r);
  return 1;
}

static u8 *put_text(u8 *to, text t) {
  if (t.n < 32) {
    *to++ = (u8)(0xa0 | t.n);
  } else {
    *to++ = 0xd9;
    *to++ = (u8)t.n;
  }
  for (u32 i = 0; i < t.n; i++) *to++ = t.at[i];
  return to;
}

static u8 *put(u8 *to, const char *s) {
  u32 n = 0;
  while (s[n]) n++;
  text t = {(const u8 *)s, n};
  return put_text(to, t);
}

static u8 *put_number(u8 *to, u32 n) {
  *to = 0xce;
  n = __builtin_bswap32(n);
  __builtin_memcpy(to + 1, &n, sizeof n);
  return to + 5;
}

static u8 *put_count(u8 *to, const char *key, u32 n) { return put_number(put(to, key), n); }

// What is the same in each reply is kept as it is encoded, and copied by words.
#define PUT(to, literal) \
  do { \
    static const char part[(sizeof literal + 6) / 8 * 8] = literal; \
    to = put_words(to, part, sizeof literal - 1); \
  } while (0)

INLINE u8 *put_words(u8 *to, const char *from, u32 n) {
  for (u32 i = 0; i < n; i += 8) __builtin_memcpy(to + i, from + i, 8);
  return to + n;
}

EXPORT("on_phase") int on_phase(void) {
  u64 n = input_length();
  if (n > MAX_INPUT) return failed("the event is larger than 1 MiB");
  input_read(input);
  reader r = {input, input + n, 0};
  counts c = {{0}, {0, 0}, {0, 0, 0}, 0};
  text index = {0, 0};
  int sent = 0;
  for (u32 fields = open_map(&r); fields && !r.bad; fields--) {
    text key = read_text(&r);
    if (same(key, "message_index")) {
      index = read_binary(&r);
      continue;
    }
    if (!same(key, "messages")) {
      skip(&r);
      continue;
    }
    sent = 1;
    for (u32 m = open_array(&r); m && !r.bad; m--) c.roles[read_fields(&r, &c, 0)]++;
    break; // the rest is not looked at
  }
  if (!sent && !r.bad && !indexed(index, input + n, &c, &r)) return failed("the index of the messages cannot be read");
  if (sent && c.content.at) c.size = text_size(&c.content);
  if (r.bad || c.content.bad) return failed("the event cannot be read");
  if (c.last.n > 255) return failed("the id of a message is longer than 255 bytes");
  u8 *to = output;
  PUT(to, "\x81\xa7" "effects\x91\x83\xa4type\xa4" "emit\xaa" "event_type\xa5roles\xa7payload\x86\xa9" "assistant");
  to = put_number(to, c.roles[ASSISTANT]);
  PUT(to, "\xa4last");
  to = put_text(to, c.last);
  PUT(to, "\xa4size");
  to = put_number(to, c.size);
  PUT(to, "\xa6system");
  to = put_number(to, c.roles[SYSTEM]);
  PUT(to, "\xa4tool");
  to = put_number(to, c.roles[TOOL]);
  PUT(to, "\xa4user");
  to = put_number(to, c.roles[USER]);
  output_write(output, (u32)(to - output));
  return 0;
}

EXPORT("describe") int describe(void) {
  u8 *to = output;
  *to++ = 0x84;
  to = put(put(to, "name"), "bench-c");
  to = put(put(to, "version"), "1.0.0");
  to = put(to, "abi");
  *to++ = 0x82;
  to = put_count(to, "min", 1);
  to = put_count(to, "max", 1);
  to = put(to, "hooks");
  *to++ = 0x91;
  *to++ = 0x84;
  to = put(put(to, "phase"), "before_inference");
  to = put(put(to, "mode"), "transform");
  to = put(put(to, "messages"), "all");
  to = put(to, "lazy_messages");
  *to++ = 0xc3;
  output_write(output, (u32)(to - output));
  return 0;
}
