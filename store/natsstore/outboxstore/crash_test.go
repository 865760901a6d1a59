package outboxstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
	"github.com/mortise-dev/mortise/store/natsstore/outboxstore"
)

// crashEnv has the name of the mailbox for the child of the crash test.
const crashEnv = "MORTISE_TEST_NATS_OUTBOX"

// crashes is how often the child is killed.
const crashes = 30

// beChild writes to an outbox and reads from it until it is killed, and says what was accepted, delivered and acknowledged.
func beChild() {
	name := os.Getenv(crashEnv)
	if name == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends with its parent
		os.Exit(1)
	}()
	fmt.Fprintln(os.Stderr, live(context.Background(), name))
	os.Exit(1)
}

func live(ctx context.Context, name string) error {
	mailbox, err := servertest.Named(ctx, name)
	if err != nil {
		return err
	}
	store, err := outboxstore.New(ctx, mailbox, outboxstore.Config{})
	if err != nil {
		return err
	}
	box, err := outbox.New(ctx, outbox.Config{Store: store, Acknowledged: func(ctx context.Context, thread string, tasks ...string) {
		_ = store.Forget(ctx, thread, tasks...) // it is killed at any time
	}})
	if err != nil {
		return err
	}
	failed := make(chan error)
	for w := range 3 {
		go func() { failed <- write(ctx, box, fmt.Sprintf("%d.%d", os.Getpid(), w)) }()
	}
	go func() { failed <- read(ctx, box) }()
	return <-failed
}

// write queues ticks and ends of tasks.
func write(ctx context.Context, box *outbox.Outbox, who string) error {
	for i := 0; ; i++ {
		id := fmt.Sprintf("%s.%d", who, i)
		n := abi.Notice{TaskID: id, Kind: abi.NoticeCustom}
		if i%2 == 0 {
			n.Kind = abi.NoticeCompleted
		}
		fmt.Println("tried", id)
		if err := box.Commit(ctx, "t", id, []byte("record"), &n); err != nil {
			return err
		}
		fmt.Println("accepted", id)
	}
}

// read takes, and acknowledges or gives back.
func read(ctx context.Context, box *outbox.Outbox) error {
	for {
		d, err := box.Take(ctx, "t")
		if err != nil {
			return err
		}
		news := d.News()
		for i := range news {
			fmt.Println("delivered", news[i].TaskID)
		}
		if rand.IntN(4) > 0 {
			if err := d.Ack(ctx, len(news)); err != nil {
				return err
			}
			for i := range news {
				fmt.Println("acked", news[i].TaskID)
			}
		}
		d.Release()
	}
}

// heard is what all children said.
type heard struct {
	said  map[string]map[string]int // what, id, how often
	again []string                  // delivered after it was acknowledged
}

func (h *heard) line(text string) {
	what, id, ok := strings.Cut(text, " ")
	if !ok {
		return // cut short
	}
	if h.said[what] == nil {
		h.said[what] = map[string]int{}
	}
	h.said[what][id]++
	if what == "delivered" && h.said["acked"][id] > 0 {
		h.again = append(h.again, id)
	}
}

// child lets a child live until it has said something, and then for a while.
func (h *heard) child(t *testing.T, env string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^$")
	cmd.Env = append(os.Environ(), crashEnv+"="+env)
	var trouble strings.Builder
	cmd.Stderr = &trouble
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	lines := bufio.NewReader(out)
	var death *time.Timer
	for {
		text, err := lines.ReadString('\n')
		if err != nil {
			break // what has no end was not said
		}
		if death == nil {
			death = time.AfterFunc(time.Duration(rand.IntN(120)+5)*time.Millisecond, func() { _ = cmd.Process.Kill() })
		}
		h.line(strings.TrimSuffix(text, "\n"))
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("a child ended by itself: %v: %s", err, trouble.String())
	}
}

// TestCrash kills a child at random moments, again and again on one stream. What was accepted is delivered, what was
// acknowledged never again.
func TestCrash(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		testskip.Skip(t, "the crash test kills 30 processes; run without -short")
	}
	name := servertest.Name(t)
	mailbox, err := servertest.Named(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer mailbox.Close(context.Background())
	h := &heard{said: map[string]map[string]int{}}
	for range crashes {
		h.child(t, name)
	}
	h.drain(t, open(t, mailbox))
	if len(h.said["accepted"]) < crashes || len(h.said["acked"]) < crashes {
		t.Fatalf("%d accepted, %d acknowledged: the test shows nothing", len(h.said["accepted"]), len(h.said["acked"]))
	}
	if len(h.again) > 0 {
		t.Errorf("%d were delivered after they were acknowledged, %s for one", len(h.again), h.again[0])
	}
	for id := range h.said["accepted"] {
		if h.said["delivered"][id] == 0 {
			t.Errorf("%s was accepted and never delivered", id)
		}
	}
	for id := range h.said["delivered"] {
		if h.said["tried"][id] == 0 || h.said["acked"][id] > 1 {
			t.Errorf("%s was tried %d times and acknowledged %d times", id, h.said["tried"][id], h.said["acked"][id])
		}
	}
	t.Logf("%d crashes: %d tried, %d accepted, %d delivered, %d acknowledged", crashes, len(h.said["tried"]), len(h.said["accepted"]), len(h.said["delivered"]), len(h.said["acked"]))
}

// drain takes what is left.
func (h *heard) drain(t *testing.T, store outbox.Store) {
	t.Helper()
	box, err := outbox.New(t.Context(), outbox.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	for box.Waiting("t") > 0 {
		d, err := box.Take(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, n := range d.News() {
			if seen[n.TaskID] {
				t.Errorf("%s is there twice", n.TaskID)
			}
			seen[n.TaskID] = true
			h.line("delivered " + n.TaskID)
		}
		if err := d.Ack(t.Context(), len(seen)); err != nil {
			t.Fatal(err)
		}
		for id := range seen {
			h.line("acked " + id)
		}
	}
	if err := box.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
