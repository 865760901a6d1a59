package natsstore_test

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// rewrite writes a head anew, as a record that none of us wrote.
func rewrite(t *testing.T, name, thread string, change func(head map[string]any) []byte, header nats.Header) {
	t.Helper()
	subject := name + ".h." + base64.RawURLEncoding.EncodeToString([]byte(thread))
	msg, err := servertest.Stream(t, name).GetLastMsgForSubject(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	var head map[string]any
	if err := json.Unmarshal(msg.Data, &head); err != nil {
		t.Fatal(err)
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
	if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: subject, Data: change(head), Header: header}); err != nil {
		t.Fatal(err)
	}
}

// TestStore_damaged holds that a thread whose head, or what hangs on it, cannot be read can be dropped, and when.
func TestStore_damaged(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	text := func(s string) func(object) []byte { return func(object) []byte { return []byte(s) } }
	part := func(of, field string, value any) func(object) []byte {
		return func(head object) []byte {
			at := head
			if of != "" {
				at, _ = head["h"].(object)
			}
			if of == "Claim" {
				at, _ = at["Claim"].(object)
			}
			if at == nil {
				t.Errorf("no %s in %v", of, head)
				return nil
			}
			at[field] = value
			data, err := json.Marshal(head)
			if err != nil {
				t.Error(err)
			}
			return data
		}
	}
	for what, c := range map[string]struct {
		change func(object) []byte
		header nats.Header
		claim  bool
	}{
		"queue":                 {change: part("", "z", []any{object{"s": 1, "n": -1}})},
		"dispatches":            {change: part("", "d", "none")},
		"pages":                 {change: part("", "p", object{"0": object{"s": 1 << 40}, "x": 1})},
		"count":                 {change: part("h", "Seq", "many")},
		"tenant_and_count":      {change: part("h", "Queued", object{})},
		"claim":                 {change: part("h", "Claim", 7), claim: true},
		"claim_of_nothing":      {change: part("Claim", "Dispatch", ""), claim: true},
		"claim_without_end":     {change: part("Claim", "Until", "soon"), claim: true},
		"claim_of_other_kind":   {change: part("Claim", "Token", 7), claim: true},
		"fence":                 {change: part("h", "Fence", "x"), claim: true},
		"time":                  {change: part("h", "UpdatedAt", "then")},
		"no_object":             {change: text("[]"), claim: true},
		"no_json":               {change: text("{\"h\":{"), claim: true},
		"nothing":               {change: text(""), claim: true},
		"pieces":                {change: text(""), header: nats.Header{"Mortise-Parts": {"9999999"}}, claim: true},
		"pieces_without_number": {change: text(""), header: nats.Header{"Mortise-Parts": {"x"}}, claim: true},
	} {
		name := "damaged-" + what
		mailboxtest.TestDamage(t, func(t *testing.T) mailbox.Store {
			t.Helper()
			return open(t, named(name))
		}, mailboxtest.Damage{Name: what, Claim: c.claim, Do: func(t *testing.T, _ mailbox.Store, k mailbox.Taken) {
			t.Helper()
			rewrite(t, name, k.Dispatch.Thread, c.change, c.header)
		}})
	}
}
