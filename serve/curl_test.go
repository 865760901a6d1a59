package serve_test

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/testskip"
)

// curl runs curl, and returns what it wrote.
func curl(t *testing.T, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("curl")
	if err != nil {
		testskip.Missing(t, "curl is not installed (Debian: apt-get install curl)")
	}
	var failed bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, append([]string{"--silent", "--show-error", "--no-buffer", "--noproxy", "*", "--max-time", "120"}, args...)...)
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("curl %q: %v: %s", args, err, failed.String())
	}
	return string(out)
}

// blocks are the events of a stream as they were sent, without the comments and the retry time.
func blocks(stream string) (out []string) {
	for b := range strings.SplitSeq(stream, "\n\n") {
		if strings.HasPrefix(b, "id: ") {
			out = append(out, b)
		}
	}
	return out
}

// TestCurl: curl follows a run from its submission to its end, and continues after any event of it with Last-Event-ID, at
// another process too.
func TestCurl(t *testing.T) {
	t.Parallel()
	open := sqlite(t)
	first, second := newWorld(t, options{store: open()}), newWorld(t, options{store: open()})
	whole := blocks(curl(t, "-N", "-H", "Content-Type: application/json", "-H", "Accept: text/event-stream",
		"-d", say("say some words"), first.http.URL+"/v1/threads/t/runs"))
	if len(whole) < 5 || !strings.Contains(whole[len(whole)-1], "event: settled\n") {
		t.Fatalf("the events are %q", whole)
	}
	run := event{data: field(whole[0], "data")}.run(t)
	for i, b := range whole {
		for _, w := range []*world{first, second} {
			rest := blocks(curl(t, "-N", "-H", "Last-Event-ID: "+field(b, "id"), w.http.URL+"/v1/runs/"+run+"/events"))
			if !slices.Equal(rest, whole[i+1:]) {
				t.Errorf("after event %d of %d curl has %q", i, len(whole), rest)
			}
		}
	}
	status := curl(t, "-o", "/dev/null", "-w", "%{http_code}", "-H", "Last-Event-ID: "+field(whole[len(whole)-1], "id"), first.http.URL+"/v1/runs/"+run+"/events")
	if status != "204" {
		t.Errorf("after the last event the status is %s", status)
	}
}

// field is a field of an event as it was sent.
func field(block, name string) string {
	for line := range strings.SplitSeq(block, "\n") {
		if value, ok := strings.CutPrefix(line, name+": "); ok {
			return value
		}
	}
	return ""
}
