package natsstore_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// written0 puts the records of testdata/format0.jsonl into the stream of a name, each under its number: 36 cycles, a claim with a commit and
// something queued, all of thread t, as format 0 had them. change may change them.
func written0(t *testing.T, name string, change func(string) string) {
	t.Helper()
	nc, err := nats.Connect(servertest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: name, Subjects: []string{name + ".>"}, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, AllowMsgTTL: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("testdata/format0.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	put := func(subject string, data []byte) uint64 {
		ack, err := js.Publish(t.Context(), name+strings.TrimPrefix(subject, "format"), data)
		if err != nil {
			t.Fatal(err)
		}
		return ack.Sequence
	}
	lines, next := bufio.NewScanner(f), uint64(1)
	for lines.Buffer(nil, 1<<20); lines.Scan(); next++ {
		var r struct {
			Seq     uint64
			Subject string
			Data    json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		for ; next < r.Seq; next++ {
			put("format.x.gap.gap", nil)
		}
		if at := put(r.Subject, []byte(change(string(r.Data)))); at != r.Seq {
			t.Fatalf("record %d is at %d", r.Seq, at)
		}
	}
}

// What format 0 wrote is read, gone on with and written anew.
func TestFormat0(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	const name, cycles = "format-old", 36
	written0(t, name, func(data string) string { return data })
	checkHistory0(t, name, cycles, 2)
	clock := mailboxtest.NewClock()
	clock.Add(cycles * time.Second)
	store := open(t, named(name))
	q := newQueue(t, store, clock.Now)
	h := mailbox.Hold{Thread: "t", Dispatch: "held", Token: "a"}
	if err := q.Commit(ctx, h, mailbox.Commit{ID: "c2", From: 1, Append: []mailbox.Message{{ID: "m2"}}}); err != nil {
		t.Fatal(err)
	}
	s, err := store.Load(ctx, "t", mailbox.Need{Claimed: true, RunsOf: true, Image: true})
	if err != nil || string(s.Image) != "image" || string(s.Runs["run-held"].Data) != "data" || s.Head.Messages != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := q.Settle(ctx, h, mailbox.Settlement{Verdict: mailbox.Ack, Result: mailbox.Result{Status: mailbox.RunDone, Termination: "natural"}}); err != nil {
		t.Fatal(err)
	}
	k, _, err := q.Claim(ctx, "t", claim("b"))
	if err != nil || k.Dispatch.ID != "waits" || string(k.Dispatch.Request) != "request waits" {
		t.Fatal(k.Dispatch, err)
	}
	if _, err := q.Settle(ctx, hold(k), mailbox.Settlement{Verdict: mailbox.Ack, Result: mailbox.Result{Status: mailbox.RunDone, Termination: "natural"}}); err != nil {
		t.Fatal(err)
	}
	const more = 20
	for i := range more {
		if err := cycle(ctx, q, "t", fmt.Sprint("new", i)); err != nil {
			t.Fatal(err)
		}
	}
	checkHistory0(t, name, cycles, 2+more)
	n, err := open(t, named(name)).Purge(ctx, mailbox.PurgeQuery{Statuses: []mailbox.Status{mailbox.Acked}, Before: clock.Now().Add(time.Hour), Limit: 1000})
	if err != nil || n != cycles+2+more {
		t.Errorf("dropped %d, %v", n, err)
	}
	checkHistory0(t, name, 0, 0)
}

// checkHistory0 checks that there are the acked ones of format 0, and others.
func checkHistory0(t *testing.T, name string, acked, others int) {
	t.Helper()
	ctx := t.Context()
	store := open(t, named(name))
	list, err := store.Dispatches(ctx, mailbox.DispatchQuery{Thread: "t", Limit: 1000})
	if err != nil || len(list) != acked+others {
		t.Fatalf("%d dispatches, want %d and %d, %v", len(list), acked, others, err)
	}
	q := newQueue(t, store, time.Now)
	for i := range acked {
		if d := &list[i]; d.ID != fmt.Sprint("d", i) || d.Status != mailbox.Acked || d.Termination != "natural" {
			t.Errorf("dispatch %d: %+v", i, d)
		}
		if i%12 != 0 {
			continue
		}
		r, ok, err := q.Run(ctx, fmt.Sprint("run-d", i))
		if err != nil || !ok || r.Status != mailbox.RunDone {
			t.Errorf("run %d: %+v, %v, %v", i, r, ok, err)
		}
	}
}

// A format that is too new is refused, by who reads and by who writes, with what mends it.
func TestFormatTooNew(t *testing.T) {
	t.Parallel()
	const name = "format-new"
	for i, change := range []func(string) string{
		func(data string) string { return strings.Replace(data, `{"h":`, `{"v":2,"h":`, 1) },
		func(data string) string {
			return strings.Replace(data, `{"h":`, `{"v":2,"x":[],"h":"is a text","i":`, 1)
		},
	} {
		each := fmt.Sprint(name, i)
		written0(t, each, func(data string) string {
			if strings.HasPrefix(data, `{"h":{"Thread"`) {
				return change(data)
			}
			return data
		})
		store := open(t, named(each))
		_, err := store.Load(t.Context(), "t", mailbox.Need{})
		_, err2 := newQueue(t, store, time.Now).Enqueue(t.Context(), newEntry("t", "d"))
		for _, err := range []error{err, err2} {
			if err == nil || !strings.Contains(err.Error(), "format 2") || !strings.Contains(err.Error(), "upgrade") {
				t.Errorf("refused with %v", err)
			}
		}
	}
}

// Every field of a record comes back.
func TestFields(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	const odd = "\"\\\n<>&\u2028\x00é日"
	at := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	count := 0
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		count++
		switch v.Kind() {
		case reflect.String:
			v.SetString(fmt.Sprint(odd, count))
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int, reflect.Int64:
			v.SetInt(int64(count))
		case reflect.Uint8, reflect.Uint64:
			v.SetUint(uint64(count)) //nolint:gosec // it is small
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem())
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 3, 3))
			for i := range 3 {
				fill(v.Index(i))
			}
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[time.Time]() {
				v.Set(reflect.ValueOf(at.Add(time.Duration(count) * time.Hour)))
				return
			}
			for _, f := range v.Fields() {
				fill(f)
			}
		default:
			t.Fatalf("a field is a %s", v.Kind())
		}
	}
	var head mailbox.Head
	var d, queued mailbox.Dispatch
	var r, born mailbox.Run
	for _, x := range []any{&head, &d, &queued, &r, &born} {
		fill(reflect.ValueOf(x).Elem())
	}
	head.Thread, head.Messages, head.Claim.Dispatch = "t", 0, d.ID
	for _, thread := range []*string{&d.Thread, &queued.Thread, &r.Thread, &born.Thread} {
		*thread = "t"
	}
	queued.Status, queued.RunID, d.RunID = mailbox.Queued, born.ID, r.ID
	queued.AvailableAt = at
	name := "fields"
	store := open(t, named(name))
	err := store.Update(ctx, "t", mailbox.Need{}, func(mailbox.State) (mailbox.Change, error) {
		return mailbox.Change{Head: &head, Dispatches: []mailbox.Dispatch{d, queued}, Runs: []mailbox.Run{r, born}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := open(t, named(name)).Load(ctx, "t", mailbox.Need{Dispatches: []string{d.ID, queued.ID}, Runs: []string{r.ID, born.ID}, Requests: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ got, want any }{
		{s.Head, head}, {s.Dispatches[d.ID], d}, {s.Dispatches[queued.ID], queued}, {s.Runs[r.ID], r}, {s.Runs[born.ID], born},
	} {
		if !reflect.DeepEqual(x.got, x.want) {
			t.Errorf("got  %+v\nwant %+v", x.got, x.want)
		}
	}
}
