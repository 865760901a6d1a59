package mailboxtest

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// testLiveStrange holds that targets and commands may have any names that are valid, and that those of one target mean nothing to another.
func testLiveStrange(t *testing.T, open func(*testing.T) mailbox.Store) {
	t.Helper()
	live, ok := open(t).(mailbox.Live)
	if !ok {
		return // an optional ability
	}
	long := strings.Builder{}
	for random := rand.New(rand.NewPCG(1, 2)); long.Len() < 256; { //nolint:gosec // the same each time
		long.WriteByte("<>&\x01\x02\"\\\x7f"[random.IntN(8)])
	}
	for _, name := range []string{"*", ">", "a.b", "a b", "", "_", "\r\nMortise-Take: x", "☃", "%", long.String()} {
		target := mailbox.Target{Thread: strings.ToUpper(name), Run: name, Dispatch: name}
		heard := make(chan mailbox.Command, 4)
		stop, err := live.Listen(t.Context(), target, func(_ context.Context, c mailbox.Command) bool {
			heard <- c
			return true
		})
		if err != nil {
			t.Errorf("%.20q: listen: %v", name, err)
			continue
		}
		for _, payload := range [][]byte{nil, []byte(name), bytes.Repeat([]byte{0, 0xff}, 1<<18)} {
			want := mailbox.Command{Kind: mailbox.CommandMessages, ID: name, Payload: payload}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			ok, err := live.Deliver(ctx, target, want)
			cancel()
			if err != nil || !ok {
				t.Errorf("%.20q: delivered %v, %v", name, ok, err)
				continue
			}
			if got := <-heard; got.ID != want.ID || got.Kind != want.Kind || !bytes.Equal(got.Payload, want.Payload) {
				t.Errorf("%.20q: heard %.80q, %.80q", name, got.ID, got.Payload)
			}
		}
		stop()
		equal(t, "heard more", len(heard), 0)
	}
}
