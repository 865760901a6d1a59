package egress_test

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/mortise-dev/mortise/internal/egress"
)

// list writes each byte in a format, with a separator between them.
func list(format, separator string) func(string) string {
	return func(s string) string {
		var out []string
		for _, c := range []byte(s) {
			out = append(out, fmt.Sprintf(format, c))
		}
		return strings.Join(out, separator)
	}
}

func reversed(s string) string {
	runes := []rune(s)
	slices.Reverse(runes)
	return string(runes)
}

func wide(s string, bigEndian bool) string {
	var out []byte
	for _, u := range utf16.Encode([]rune(s)) {
		low, high := byte(u), byte(u>>8)
		if bigEndian {
			low, high = high, low
		}
		out = append(out, low, high)
	}
	return string(out)
}

// recodings are the ways of showing a value that are no escapes.
func recodings() map[string]func(string) string {
	std := base64.StdEncoding.EncodeToString
	out := map[string]func(string) string{
		"upper": strings.ToUpper, "lower": strings.ToLower,
		"reversed": reversed, "utf-16 le": func(s string) string { return wide(s, false) }, "utf-16 be": func(s string) string { return wide(s, true) },
		"hex colon": list("%02x", ":"), "hex space": list("%02X", " "), "hex dash": list("%02x", "-"), "hex wrapped": func(s string) string { return wrap(hex.EncodeToString([]byte(s)), 6) },
		"hex list": list("0x%02x", ", "), "hex list short": list("0x%x", ","), "hex xxd": func(s string) string {
			return strings.Join(slices.Collect(chunks(hex.EncodeToString([]byte(s)), 4)), " ")
		},
		"decimal": list("%d", " "), "decimal json": list("%d", ","), "decimal lines": list("%d", ",\n  "), "decimal dots": list("%d", "."),
		"octal": list("%o", " "), "octal escapes": func(s string) string { return list(`\%03o`, "")(s) }, "octal go": list("0o%o", ","),
		"quoted-printable": list("=%02X", ""), "quoted-printable wrapped": list("=%02X", "=\r\n"),
		"spaced": func(s string) string { return strings.Join(strings.Split(s, ""), " ") },
	}
	for i, pad := range []string{"", "x", "yz", "abc", "abcd", "abcde"} {
		out[fmt.Sprintf("base32 %d", i)] = func(s string) string { return base32.StdEncoding.EncodeToString([]byte(pad + s + "t")) }
		out[fmt.Sprintf("base32 hex %d", i)] = func(s string) string { return base32.HexEncoding.EncodeToString([]byte(pad + s)) }
		out[fmt.Sprintf("base32 lower %d", i)] = func(s string) string { return strings.ToLower(base32.StdEncoding.EncodeToString([]byte(pad + s))) }
		for j, more := range []string{"", "1", "22"} {
			out[fmt.Sprintf("base64 twice %d %d", i, j)] = func(s string) string { return std([]byte(more + std([]byte(pad+s)))) }
			out[fmt.Sprintf("base64 twice url %d %d", i, j)] = func(s string) string {
				return base64.RawURLEncoding.EncodeToString([]byte(more + base64.URLEncoding.EncodeToString([]byte(pad+s))))
			}
		}
	}
	return out
}

func chunks(s string, n int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for len(s) > n && yield(s[:n]) {
			s = s[n:]
		}
		yield(s)
	}
}

func TestRedactFindsEveryRecoding(t *testing.T) {
	t.Parallel()
	for _, value := range []string{token, "12345678", "sk_live_51H/8+x==", "Abc-Def_ghi.jkl", "pässwörd-😀-key", "user:" + password, strings.Repeat("long-secret/", 20)} {
		for name, encode := range recodings() {
			if name == "spaced" && !strings.ContainsAny(value, "abc") || strings.HasPrefix(name, "octal esc") && value == "" {
				continue
			}
			shown := encode(value)
			for _, frame := range []string{"%s", "before %s after", "\n%s\n", `{"a": [%s], "b": "1"}`} {
				text := strings.Replace(frame, "%s", shown, 1)
				out, n, ok := egress.Redact([]byte(text), "key", value, 1<<20)
				if !ok || n < 1 || strings.Contains(out, shown) || !strings.Contains(out, "{{secret.key}}") {
					t.Errorf("%s of %q in %q: %d finds: %q", name, value, text, n, out)
				}
				before, after, _ := strings.Cut(frame, "%s")
				if !strings.HasPrefix(name, "base") && (!strings.HasPrefix(out, before) || !strings.HasSuffix(out, after)) {
					t.Errorf("%s of %q in %q: more is gone: %q", name, value, text, out)
				}
			}
		}
	}
}

// TestRedactPrefix: most of a long secret is one.
func TestRedactPrefix(t *testing.T) {
	t.Parallel()
	const value = "sk_live_4f9aK2mQ7xZ1bT8wR5yN0cV" // 31 characters
	for n, want := range map[int]bool{31: true, 30: true, 24: true, 20: true, 19: false, 8: false} {
		out, _, _ := egress.Redact([]byte("key "+value[:n]+"... end"), "key", value, 1000)
		if shown := strings.Contains(out, value[:8]); shown == want || want && out != "key {{secret.key}}... end" {
			t.Errorf("%d characters: %q", n, out)
		}
	}
}

// TestRedactLeavesOthers: texts that only look alike stay as they are.
func TestRedactLeavesOthers(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"115 107 95 108", "[1, 2, 3, 4, 5, 6, 7, 8]", "2026-11-22T10:36:50Z 127.0.0.1 0x7f 0777", "a=b&c=d== =41=42 =zz",
		`{"numbers": [256, -1, 1.5e3, 0o777, 0xffff], "text": "\u0073\u006b"}`, "\x00\x00s\x00k\x00", strings.Repeat("0x", 100), strings.Repeat("=", 100),
	} {
		if out, n, ok := egress.Redact([]byte(text), "key", token, 1<<20); n != 0 || !ok || out != text {
			t.Errorf("%q becomes %q", text, out)
		}
	}
}

// TestRedactRecodingsAreBounded: what is searched grows with the text and not faster, whatever is in it.
func TestRedactRecodingsAreBounded(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"97 ", "0x61,", "=61", "a\x00", "61:", `\141`, "a1:", "YTE6", "1", "=\r\n", "0", "%3d%36%31", `\u0030x61,=`} {
		text := []byte(strings.Repeat(unit, 1<<14))
		if n, marks := egress.ViewBytes(text); n > 12*len(text) || marks > 12*len(text) {
			t.Errorf("%q: %d bytes and %d marks for %d bytes", unit, n, marks, len(text))
		}
	}
}

// TestCompressedByMagic: a body that is compressed without saying so cannot be searched.
func TestCompressedByMagic(t *testing.T) {
	t.Parallel()
	var gz, zl bytes.Buffer
	g := gzip.NewWriter(&gz)
	_, _ = g.Write([]byte("Bearer " + token))
	_ = g.Close()
	z := zlib.NewWriter(&zl)
	_, _ = z.Write([]byte("Bearer " + token))
	_ = z.Close()
	bz := []byte("BZh91AY&SY\x00\x00\x00\x00")
	if _, err := bzip2.NewReader(bytes.NewReader(bz)).Read(make([]byte, 1)); err == nil {
		t.Error("that is all of a stream")
	}
	bodies := map[string][]byte{
		"/gzip": gz.Bytes(), "/zlib": zl.Bytes(), "/bzip2": bz,
		"/zstd": []byte("\x28\xb5\x2f\xfd\x04\x58\x29\x00\x00hello"), "/zstd-skippable": []byte("\x53\x2a\x4d\x18\x00\x00\x00\x00"),
		"/xz": []byte("\xfd7zXZ\x00\x00\x04"), "/lz4": []byte("\x04\x22\x4d\x18\x64"),
		"/text": []byte("x^2 + y^2"), "/bz": []byte("BZh9 is a name"), "/empty": nil, "/short": []byte("\x1f"), "/x": []byte("x"),
	}
	url := serve(t, "https", "a.example.com", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(bodies[r.URL.Path])
	})
	with, without := withSecrets(t, nil), broker(t, nil)
	for path, body := range bodies {
		if resp := get(t, without, egress.Request{URL: url + path}); !bytes.Equal(resp.Body, body) {
			t.Errorf("%s: %q", path, resp.Body)
		}
		if !slices.Contains([]string{"/text", "/bz", "/empty", "/short", "/x"}, path) {
			_ = refused(t, with, egress.Request{URL: url + path, Header: bearer()}, egress.ReasonSecret)
		} else if resp := get(t, with, egress.Request{URL: url + path, Header: bearer()}); !bytes.Equal(resp.Body, body) {
			t.Errorf("%s: %q", path, resp.Body)
		}
	}
}
