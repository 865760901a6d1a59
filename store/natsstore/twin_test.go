package natsstore_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// twin is a line to a server on which a second one answers: one that was the leader, is cut off from the others, and does not know it
// yet. It refuses the next write of a head at once; the true leader is slow, and has that write before the one that follows.
type twin struct {
	t      *testing.T
	server string
	root   string

	mu sync.Mutex
	// armed says that the next head is refused, held is that head until another one comes.
	armed bool
	held  []byte
	// dropped is told of each record that the client wants dropped.
	dropped chan struct{}
	down    net.Conn
	sids    map[string]string
}

func newTwin(t *testing.T, root string) *twin {
	t.Helper()
	return &twin{
		t: t, root: root, server: strings.TrimPrefix(servertest.URL(t), "nats://"), dropped: make(chan struct{}, 1000), sids: map[string]string{},
	}
}

// Dial implements nats.CustomDialer.
func (w *twin) Dial(network, _ string) (net.Conn, error) {
	server, err := net.Dial(network, w.server)
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	w.down = far
	go w.frames(server, far, func(frame []byte) { w.answer(frame) })
	go w.frames(far, server, func(frame []byte) { w.send(server, frame) })
	return near, nil
}

// frames hands over what comes from one side, piece by piece of the protocol, and closes both sides at its end.
func (w *twin) frames(from, other net.Conn, hand func([]byte)) {
	defer from.Close()
	defer other.Close()
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		words := strings.Fields(string(line))
		if len(words) > 0 && slices.Contains([]string{"PUB", "HPUB", "MSG", "HMSG"}, words[0]) {
			n, err := strconv.Atoi(words[len(words)-1])
			if err != nil {
				return
			}
			data := make([]byte, n+2)
			if _, err := io.ReadFull(r, data); err != nil {
				return
			}
			line = append(line, data...)
		}
		hand(line)
	}
}

func (w *twin) answer(frame []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.down.Write(frame) // it ends with the test
}

// send takes what the client sends.
func (w *twin) send(server net.Conn, frame []byte) {
	first, _, _ := bytes.Cut(frame, []byte("\r\n"))
	words := strings.Fields(string(first))
	if words[0] == "SUB" {
		w.mu.Lock()
		w.sids[words[1]] = words[len(words)-1]
		w.mu.Unlock()
	}
	if len(words) > 2 && words[1] == "$JS.API.STREAM.MSG.DELETE."+w.root {
		w.dropped <- struct{}{}
	}
	if len(words) > 3 && words[0] == "HPUB" && strings.HasPrefix(words[1], w.root+".h.") && w.head(server, words[2], frame) {
		return
	}
	_, _ = server.Write(frame)
}

// head takes the write of a head, and says whether it is held back.
func (w *twin) head(server net.Conn, reply string, frame []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.armed {
		if w.held != nil {
			_, _ = server.Write(w.held)
			w.held = nil
		}
		return false
	}
	w.armed, w.held = false, frame
	refusal := fmt.Sprintf(`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 1"},"stream":%q,"seq":0}`, w.root)
	_, _ = fmt.Fprintf(w.down, "MSG %s %s %d\r\n%s\r\n", reply, w.sid(reply), len(refusal), refusal)
	return true
}

// sid is the number of the subscription that takes a reply.
func (w *twin) sid(reply string) string {
	for pattern, sid := range w.sids {
		if strings.HasPrefix(reply, strings.TrimSuffix(pattern, "*")) {
			return sid
		}
	}
	w.t.Errorf("nobody takes the reply %q", reply)
	return ""
}

func (w *twin) arm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = true
}

// What a server refuses another one may have: nothing that it needs is dropped before a later head shows that it was lost.
func TestTwoLeaders(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	name := servertest.NewName()
	w := newTwin(t, name)
	store := open(t, named(name), func(c *natsstore.Config) { c.Options = append(c.Options, nats.SetCustomDialer(w)) })
	q := newQueue(t, store, time.Now)
	large := func(fill string) []byte { return bytes.Repeat([]byte(fill), 50_000) }
	if _, err := q.Enqueue(ctx, newEntry("t", "d")); err != nil {
		t.Fatal(err)
	}
	k, ok, err := q.Claim(ctx, "t", claim("a"))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	for i := range 3 {
		w.arm()
		id := fmt.Sprint("m", i)
		c := mailbox.Commit{ID: id, From: i, Image: large(id), Data: large(id), Append: []mailbox.Message{{ID: id, Data: large(id)}}}
		if err := q.Commit(ctx, hold(k), c); err != nil {
			t.Fatal(err)
		}
	}
	w.mu.Lock()
	armed, held := w.armed, w.held != nil
	w.mu.Unlock()
	if armed || held {
		t.Fatalf("no head was held back (%v), or it did not get through (%v)", armed, held)
	}
	if err := q.Commit(ctx, hold(k), mailbox.Commit{ID: "last", From: 3, Image: []byte("last")}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.dropped: // the image before; what was to be dropped before that has been by then
	case <-time.After(10 * time.Second):
		t.Fatal("nothing is dropped")
	}
	other := open(t, named(name))
	log, err := other.Messages(ctx, "t", 1, 10)
	if err != nil || len(log) != 3 {
		t.Fatalf("%d messages, %v", len(log), err)
	}
	for i, m := range log {
		if want := large(fmt.Sprint("m", i)); !bytes.Equal(m.Data, want) {
			t.Errorf("message %d has %d bytes, want %d", i, len(m.Data), len(want))
		}
	}
	s, err := other.Load(ctx, "t", mailbox.Need{Image: true, RunsOf: true, Runs: []string{"run-d"}})
	if err != nil || string(s.Image) != "last" {
		t.Errorf("image %q, %v", s.Image, err)
	}
}
