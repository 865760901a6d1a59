// Ordinary work of the benchmarks in C, without a library: JSON is taken apart and put together again, and the
// words of a text are counted. Input that is not what it should be makes an export return 1.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define IMPORT(module, name) __attribute__((import_module(module), import_name(name)))
#define EXPORT(name) __attribute__((export_name(name)))

IMPORT("extism:host/env", "input_length") u64 input_length(void);
IMPORT("mortise:host/1", "input_read") void input_read(void *to);
IMPORT("mortise:host/1", "output_write") void output_write(const void *from, u32 n);

#define MAX_INPUT (1 << 18)
static u8 input[MAX_INPUT], arena[MAX_INPUT], output[2 * MAX_INPUT];
static u32 used, written;

static int read_input(void) {
  u64 n = input_length();
  if (n >= MAX_INPUT) return 0;
  input_read(input);
  input[n] = 0;
  used = written = 0;
  return 1;
}

// Tokens of a JSON text, in its order. Strings stand in the arena without their escapes,
// numbers and names in the input.
typedef struct {
  u8 kind; // the first character, or 'a' for a name and '0' for a number
  u32 at, n;
} token;

#define MAX_TOKENS (1 << 14)
static token tokens[MAX_TOKENS];
static u32 count;

static int hex(u8 c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void put_rune(u32 c) {
  if (c < 0x80) {
    arena[used++] = (u8)c;
  } else if (c < 0x800) {
    arena[used++] = (u8)(0xc0 | c >> 6);
    arena[used++] = (u8)(0x80 | (c & 0x3f));
  } else {
    arena[used++] = (u8)(0xe0 | c >> 12);
    arena[used++] = (u8)(0x80 | (c >> 6 & 0x3f));
    arena[used++] = (u8)(0x80 | (c & 0x3f));
  }
}

// read_string reads the rest of a string and returns where it ends, 0 if it does not.
static u32 read_string(u32 i) {
  for (;;) {
    u8 c = input[i++];
    if (c == '"') return i;
    if (c < 0x20) return 0;
    if (c != '\\') {
      arena[used++] = c;
      continue;
    }
    c = input[i++];
    if (c == 'u') {
      u32 rune = 0;
      for (int k = 0; k < 4; k++) {
        int digit = hex(input[i++]);
        if (digit < 0) return 0;
        rune = rune << 4 | (u32)digit;
      }
      put_rune(rune);
      continue;
    }
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    int k = 0;
    while (from[k] && from[k] != c) k++;
    if (!from[k]) return 0;
    arena[used++] = (u8)to[k];
  }
}

static int plain(u8 c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == 'E' || c == '.' || c == '-' || c == '+'; }

static int tokenize(void) {
  count = 0;
  for (u32 i = 0; input[i];) {
    u8 c = input[i];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      i++;
      continue;
    }
    if (count == MAX_TOKENS) return 0;
    token t = {c, i, 1};
    if (c == '"') {
      t.at = used;
      if (!(i = read_string(i + 1))) return 0;
      t.n = used - t.at;
    } else if (plain(c)) {
      t.kind = c >= 'a' && c <= 'z' ? 'a' : '0';
      while (plain(input[i])) i++;
      t.n = i - t.at;
    } else {
      i++;
    }
    tokens[count++] = t;
  }
  return count > 0;
}

static void write_string(const u8 *s, u32 n) {
  static const char digits[] = "0123456789abcdef";
  u8 *to = output + written;
  *to++ = '"';
  for (u32 i = 0; i < n; i++) {
    u8 c = s[i];
    if (c == '"' || c == '\\') {
      *to++ = '\\';
      *to++ = c;
    } else if (c == '\n') {
      *to++ = '\\';
      *to++ = 'n';
    } else if (c < 0x20) {
      *to++ = '\\';
      *to++ = 'u';
      *to++ = '0';
      *to++ = '0';
      *to++ = (u8)digits[c >> 4];
      *to++ = (u8)digits[c & 15];
    } else {
      *to++ = c;
    }
  }
  *to++ = '"';
  written = (u32)(to - output);
}

EXPORT("work_json") int work_json(void) {
  if (!read_input() || !tokenize()) return 1;
  for (u32 i = 0; i < count; i++) {
    token t = tokens[i];
    if (written + 6 * t.n + 2 > sizeof output) return 1;
    if (t.kind == '"') {
      write_string(arena + t.at, t.n);
      continue;
    }
    for (u32 k = 0; k < t.n; k++) output[written++] = input[t.at + k];
  }
  output_write(output, written);
  return 0;
}

// Words, found by their hash.
typedef struct {
  u32 at, n, times;
} word;

#define MAX_WORDS (1 << 12)
static word words[MAX_WORDS];
static unsigned short slots[2 * MAX_WORDS], order[MAX_WORDS];

static int same(const word *w, u32 at, u32 n) {
  if (w->n != n) return 0;
  for (u32 i = 0; i < n; i++)
    if (arena[w->at + i] != arena[at + i]) return 0;
  return 1;
}

static int before(const word *a, const word *b) {
  for (u32 i = 0; i < a->n && i < b->n; i++)
    if (arena[a->at + i] != arena[b->at + i]) return arena[a->at + i] < arena[b->at + i];
  return a->n < b->n;
}

static int add_word(u32 at, u32 n) {
  u32 hash = 2166136261u;
  for (u32 i = 0; i < n; i++) hash = (hash ^ arena[at + i]) * 16777619u;
  u32 slot = hash % (2 * MAX_WORDS);
  for (; slots[slot]; slot = (slot + 1) % (2 * MAX_WORDS)) {
    word *w = &words[slots[slot] - 1];
    if (same(w, at, n)) {
      w->times++;
      used = at; // the copy is not needed
      return 1;
    }
  }
  if (count == MAX_WORDS) return 0;
  word w = {at, n, 1};
  words[count] = w;
  slots[slot] = (unsigned short)++count;
  return 1;
}

static void sort_words(void) {
  for (u32 i = 0; i < count; i++) order[i] = (unsigned short)i;
  for (u32 gap = count / 2; gap; gap /= 2) {
    for (u32 i = gap; i < count; i++) {
      unsigned short one = order[i];
      u32 k = i;
      for (; k >= gap && before(&words[one], &words[order[k - gap]]); k -= gap) order[k] = order[k - gap];
      order[k] = one;
    }
  }
}

EXPORT("work_text") int work_text(void) {
  if (!read_input()) return 1;
  count = 0;
  for (u32 i = 0; i < 2 * MAX_WORDS; i++) slots[i] = 0;
  for (u32 i = 0; input[i];) {
    while (input[i] == ' ' || input[i] == '\n') i++;
    u32 at = used;
    for (; input[i] && input[i] != ' ' && input[i] != '\n'; i++) {
      u8 c = input[i];
      arena[used++] = c >= 'A' && c <= 'Z' ? c | 0x20 : c;
    }
    if (used > at && !add_word(at, used - at)) return 1;
  }
  sort_words();
  for (u32 i = 0; i < count; i++) {
    word w = words[order[i]];
    for (u32 k = 0; k < w.n; k++) output[written++] = arena[w.at + k];
    output[written++] = ' ';
    u8 digits[10];
    u32 n = 0;
    for (u32 v = w.times; v; v /= 10) digits[n++] = (u8)('0' + v % 10);
    while (n) output[written++] = digits[--n];
    output[written++] = '\n';
  }
  output_write(output, written);
  return 0;
}
