package natsstore_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// TestLongQueue_damaged holds that a head which says of the queue's pages what is not so is refused, whatever it says.
func TestLongQueue_damaged(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	const name = "bad-queue"
	q := newQueue(t, open(t, named(name)), time.Now)
	for i := range 100 {
		if _, err := q.Enqueue(ctx, newEntry("t", fmt.Sprint("d", i))); err != nil {
			t.Fatal(err)
		}
	}
	nc, err := nats.Connect(servertest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	msg, err := servertest.Stream(t, name).GetLastMsgForSubject(ctx, name+".h.*")
	if err != nil {
		t.Fatal(err)
	}
	for field, values := range map[string][]any{
		"n": {-1, 0, 1, 63, 4096, 1 << 30}, "f": {-1, 1 << 30}, "s": {1, 1 << 40}, "g": {"!"},
	} {
		for _, v := range values {
			var head map[string]any
			if err := json.Unmarshal(msg.Data, &head); err != nil {
				t.Fatal(err)
			}
			pages, _ := head["z"].([]any)
			if len(pages) == 0 {
				t.Fatalf("no pages: %s", msg.Data)
			}
			page, _ := pages[0].(map[string]any)
			page[field] = v
			data, err := json.Marshal(head)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := js.Publish(ctx, msg.Subject, data); err != nil {
				t.Fatal(err)
			}
			_, err = open(t, named(name)).Load(ctx, "t", mailbox.Need{Queued: true})
			if field != "g" && (err == nil || !strings.Contains(err.Error(), "damaged") && !strings.Contains(err.Error(), "is not there")) {
				t.Errorf("%s %v: %v", field, v, err)
			}
		}
	}
}
