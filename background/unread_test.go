package background_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
)

// deaf is a sub-agent that reads nothing.
func deaf(ctx context.Context, t *background.Task, _ *inbox.Box) (any, error) {
	return untilCancelled(ctx, t)
}

// letter is a message of n bytes that is like no other.
func letter(i, n int) string { return fmt.Sprint(i, "-") + strings.Repeat("x", n-2) }

// returned lists what came back to the owner of a sub-agent, and fails when a notice is
// larger than allowed or not before the end.
func returned(t *testing.T, notices []abi.Notice, limit int) (all []string) {
	t.Helper()
	for i, n := range notices {
		if n.Kind != abi.NoticeCustom {
			if i != len(notices)-1 {
				t.Errorf("the end is notice %d of %d", i, len(notices))
			}
			continue
		}
		p, _ := n.Payload.(map[string]any)
		messages, _ := p["messages"].([]any)
		if n.EventType != background.UndeliveredMessages || p["count"] != int64(len(messages)) {
			t.Fatalf("notice %d is %+v", i, n)
		}
		bytes := 0
		for _, message := range messages {
			fields, _ := message.(map[string]any)
			content, _ := fields["content"].(string)
			bytes += len(content) + len(fmt.Sprint(fields["from"]))
			all = append(all, content)
		}
		if bytes > limit {
			t.Errorf("notice %d has %d bytes of messages, at most %d are allowed", i, bytes, limit)
		}
	}
	return all
}

// TestUnreadMessagesComeBackWhole sends more than one notice may hold, with a ledger that fails for a while.
func TestUnreadMessagesComeBackWhole(t *testing.T) {
	t.Parallel()
	const limit = 1000
	for name, sizes := range map[string][]int{
		"largest": {limit - 1, limit - 1, limit - 1}, "large": {600, 600, 600, 600, 600}, "mixed": {10, 990, 400, 300, 200, 10, 999, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				failures := 3
				b := &ledger{}
				m := newManager(t, background.Config{Ledger: b, Limits: background.Limits{MaxPayload: limit}})
				id := agent(t, m, "a", deaf)
				b.fail = func(string, bool) error {
					failures--
					if failures >= 0 {
						return errors.New("the disk is slow today")
					}
					return nil
				}
				var want []string
				for i, n := range sizes {
					want = append(want, letter(i, n))
					if err := m.SendMessage(t.Context(), id, "a", "x", want[i]); err != nil {
						t.Fatal(err)
					}
				}
				m.Cancel(id)
				wait(t, m, "a")
				got := returned(t, b.of("a"), limit)
				if fmt.Sprint(got) != fmt.Sprint(want) || m.Stats().Undelivered != len(want) || m.Stats().LostNotices != 0 {
					t.Fatalf("of %d messages %d came back: %.300q, %+v", len(want), len(got), got, m.Stats())
				}
				closeManager(t, m)
			})
		})
	}
}

// TestUnreadMessagesWaitForRoom has an owner with room for one notice at a time.
func TestUnreadMessagesWaitForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 100
		box := inbox.NewBox(1, nil)
		m := newManager(t, background.Config{Ledger: into(box), Limits: background.Limits{MaxPayload: limit}})
		id := agent(t, m, "a", deaf)
		for i := range 5 {
			if err := m.SendMessage(t.Context(), id, "a", "x", letter(i, 90)); err != nil {
				t.Fatal(err)
			}
		}
		m.Cancel(id)
		var notices []abi.Notice
		for i := range 6 {
			<-time.After(time.Minute)
			if i < 5 && !m.HasBlocking("a") {
				t.Fatal("the agent has ended before its owner had room")
			}
			n, err := box.Recv(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			notices = append(notices, n)
		}
		if got := returned(t, notices, limit); len(got) != 5 || m.HasBlocking("a") {
			t.Fatalf("%d of 5 messages came back", len(got))
		}
		closeManager(t, m)
	})
}

// TestCloseWithUnreadMessages closes while the owner takes nothing: Close ends in its
// time, and counts what was lost.
func TestCloseWithUnreadMessages(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]background.AgentBody{
		"ends_at_once": deaf,
		"emits": func(_ context.Context, task *background.Task, _ *inbox.Box) (any, error) {
			return task.Emit("tick", nil), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newManager(t, background.Config{Limits: background.Limits{MaxPayload: 100}, Ledger: &ledger{give: func(ctx context.Context, _ string, _ abi.Notice) error {
					<-ctx.Done()
					return context.Cause(ctx)
				}}})
				id := agent(t, m, "a", body)
				for i := range 100 {
					if err := m.SendMessage(t.Context(), id, "a", "x", letter(i, 90)); err != nil {
						t.Fatal(err)
					}
				}
				start := time.Now()
				_ = m.Close(t.Context()) // a body that continued is reported
				if took := time.Since(start); took > background.DefaultGrace+2*time.Second {
					t.Errorf("close took %s with a grace of %s", took, background.DefaultGrace)
				}
				if s := m.Stats(); s.Undelivered != 100 || s.LostNotices != 100 || s.Unsaved != 1 || s.Running != 0 {
					t.Errorf("stats are %+v, want 100 undelivered messages, 100 lost notices and an end that was not saved", s)
				}
			})
		})
	}
}
