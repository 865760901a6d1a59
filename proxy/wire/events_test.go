package wire_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// TestSplitter_fields: an event has its id and delay, lines of data are joined in time that their number does not square, and Raw stays.
func TestSplitter_fields(t *testing.T) {
	t.Parallel()
	const lines = 1 << 20
	raw := "id: 7\nretry: 50\nevent: message\n" + strings.Repeat("data:x\n", lines) + "\n"
	var s wire.Splitter
	_, _ = s.Write([]byte(raw))
	begin := time.Now()
	e, ok := s.Next()
	if !ok || e.ID != "7" || e.Retry != "50" || e.Name != "message" || string(e.Data) != strings.Repeat("x\n", lines-1)+"x" || string(e.Raw) != raw {
		t.Errorf("%v, id %q, retry %q, name %q, %d bytes of data", ok, e.ID, e.Retry, e.Name, len(e.Data))
	}
	if took := time.Since(begin); took > 10*time.Second { // it was minutes
		t.Errorf("it took %s", took)
	}
}
