package cli_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/cli"
	"github.com/mortise-dev/mortise/internal/cli/links"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// TestStoreWords: what stores refuse is worded with the parts of the URL, and not with fields of Go.
func TestStoreWords(t *testing.T) {
	t.Parallel()
	_, replicas := natsstore.Open(t.Context(), natsstore.Config{URL: "nats://127.0.0.1:1", Replicas: 2})
	_, name := natsstore.Open(t.Context(), natsstore.Config{URL: "nats://127.0.0.1:1", Stream: "a.b"})
	_, schema := pgstore.Open(t.Context(), pgstore.Config{URL: "postgres://a@127.0.0.1:1/b", Schema: "A-B"})
	_, url := pgstore.Open(t.Context(), pgstore.Config{URL: "postgres://a:b@127.0.0.1:x/b"})
	for want, err := range map[string]error{"replicas is 2": replicas, "the name in the URL": name, "schema of the URL": schema, "the URL": url} {
		if err == nil {
			t.Errorf("%s: there is no error", want)
			continue
		}
		if text := exit.Text(err); !strings.Contains(text, want) || regexp.MustCompile(`\b(File)?Config\.[A-Z]`).MatchString(text) {
			t.Errorf("%q, want %q", text, want)
		}
	}
	var out, log bytes.Buffer
	code := cli.Main(t.Context(), []string{"compact", "show", "nats://127.0.0.1:1/a.b"}, cli.Streams{Out: &out, Err: &log}, links.All())
	if text := log.String(); code == exit.OK || !strings.Contains(text, "the name in the URL") || strings.Contains(text, "Config.") {
		t.Errorf("%d %s", code, text)
	}
}
