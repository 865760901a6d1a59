package natsstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// openName opens the store of a server and a stream, "URL name".
func openName(ctx context.Context, text string) (mailbox.Store, func(context.Context) error, error) {
	url, name, _ := strings.Cut(text, " ")
	s, err := natsstore.Open(ctx, natsstore.Config{URL: url, Name: name})
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

// Under the race detector a process takes half a second to start; all 200 are killed without it, or when
// the environment asks for a number of servers, too.
func TestStore_killed(t *testing.T) {
	t.Parallel()
	wait := patient / 3
	if _, all := rounds(t); all {
		wait = time.Hour
	}
	mailboxtest.TestCrashFor(t, openName, servertest.URL(t)+" killed", wait)
}
