package dynamic_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/dynamic"
)

func TestBase64(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é and more\n", 3000)
	encode := base64.StdEncoding.EncodeToString
	for name, c := range map[string]struct{ s, media, head, text string }{
		"text":       {encode([]byte("key=hunter2")), "", "", "key=hunter2"},
		"long":       {encode([]byte(long)), "image/png", "", long},
		"no padding": {strings.TrimRight(encode([]byte("a")), "="), "", "", "a"},
		"lines":      {encode([]byte(long))[:76] + "\r\n" + encode([]byte(long))[76:], "", "", long},
		"data URL":   {"data:application/x-sh;base64," + encode([]byte("ls")), "", "data:application/x-sh;base64,", "ls"},
		"declared":   {encode([]byte("caf\xe9")), "text/plain; charset=latin1", "", "caf\ufffd"},
		"declared 2": {"data:Text/csv;base64," + encode([]byte("a,\x00")), "", "data:Text/csv;base64,", "a,\x00"},
		"a bad end":  {encode([]byte(long)) + "!", "", "", long},
		"image":      {encode([]byte("\x89PNG\r\n\x1a\n")), "image/png", "", ""},
		"PDF":        {encode([]byte("%PDF-1.4\n1 0 obj")), "application/pdf", "", ""},
		"archive":    {encode([]byte("PK\x03\x04")), "", "", ""},
		"no base64":  {"!", "text/plain", "", ""},
		"empty":      {"", "text/plain", "", ""},
	} {
		head, text, ok := dynamic.Base64(c.s, c.media)
		if head != c.head || text != c.text || ok != (c.text != "") {
			t.Errorf("%s: %q %.60q %v", name, head, text, ok)
		}
		if ok && !dynamic.IsBase64Text(c.s[:min(len(c.s), 1500)], c.media) {
			t.Errorf("%s: its beginning is no text", name)
		}
	}
}
