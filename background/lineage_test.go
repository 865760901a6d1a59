package background_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
)

// inBubble runs a test with a manager and a ledger of notices in a bubble.
func inBubble(t *testing.T, test func(*testing.T, *background.Manager, *ledger)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		m := newManager(t, background.Config{Ledger: l, NewID: counter()})
		test(t, m, l)
		closeManager(t, m)
	})
}

// grown spawns a root that spawns a child that spawns a grandchild.
func grown(t *testing.T, m *background.Manager) (ids []string) {
	t.Helper()
	found := make(chan string, 3)
	nest := func(body background.Body) background.Body {
		return func(ctx context.Context, task *background.Task) (any, error) {
			found <- task.ID()
			// On a goroutine of its own: the lineage goes with the context.
			errs := make(chan error, 1)
			go func() {
				_, err := m.Spawn(ctx, background.Spec{Thread: "a", Type: "test", Body: body})
				errs <- err
			}()
			if err := <-errs; err != nil {
				return nil, err
			}
			return untilCancelled(ctx, task)
		}
	}
	leaf := func(ctx context.Context, task *background.Task) (any, error) {
		found <- task.ID()
		return untilCancelled(ctx, task)
	}
	spawn(t, m, "a", nest(nest(leaf)))
	synctest.Wait()
	for range 3 {
		ids = append(ids, <-found)
	}
	return ids
}

func TestLineage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *background.Manager, *ledger){
		"spawn_with_parent_context_preserves_lineage": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			own := background.Lineage{TaskID: "bg_77", RunID: "run", CallID: "call", AgentID: "agent"}
			ctx := background.WithLineage(t.Context(), background.Lineage{TaskID: "other", RunID: "other", CallID: "other", AgentID: "other"})
			id, err := m.Spawn(ctx, background.Spec{Thread: "a", Type: "x", Parent: own, Body: untilCancelled})
			if err != nil || status(t, m, id).Parent != own {
				t.Fatalf("lineage is %+v, %v", status(t, m, id).Parent, err)
			}
		},
		"spawn_with_default_parent_context_inherits_ambient_tool_lineage": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			ambient := background.Lineage{RunID: "run", CallID: "call", AgentID: "agent"}
			tool := background.ToolContext(t.Context(), abi.RunIdentity{RunID: "run", AgentID: "agent"}, abi.ToolCall{ID: "call"})
			byDefault, err := m.Spawn(tool, background.Spec{Thread: "a", Type: "x", Body: untilCancelled})
			if err != nil || status(t, m, byDefault).Parent != ambient {
				t.Fatalf("lineage is %+v, %v", status(t, m, byDefault).Parent, err)
			}
			// What the spec says wins, and the rest comes from the context.
			spec := background.Spec{Thread: "a", Type: "x", Parent: background.Lineage{RunID: "mine"}, Body: untilCancelled}
			id, err := m.Spawn(background.WithLineage(t.Context(), ambient), spec)
			want := background.Lineage{RunID: "mine", CallID: "call", AgentID: "agent"}
			if err != nil || status(t, m, id).Parent != want {
				t.Fatalf("lineage is %+v, %v", status(t, m, id).Parent, err)
			}
		},
		"nested_spawn_inherits_parent_task_id_from_ambient_task_context": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			ids := grown(t, m)
			if p := status(t, m, ids[1]).Parent; p.TaskID != ids[0] {
				t.Fatalf("the child's lineage is %+v", p)
			}
			if n := m.CancelTree(ids[1]); n != 2 {
				t.Fatalf("%d of 2 were asked to end", n)
			}
			synctest.Wait()
			if status(t, m, ids[0]).Status != background.Running {
				t.Fatal("the parent was cancelled with its child")
			}
		},
		"manager_cancel_tree_cascades_to_descendants": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			ids := grown(t, m)
			if n := m.CancelTree(ids[0]); n != 3 {
				t.Fatalf("%d of 3 were asked to end", n)
			}
			wait(t, m, "a")
			for _, id := range ids {
				if got := status(t, m, id).Status; got != background.Cancelled {
					t.Fatalf("task %s is %s", id, got)
				}
			}
			if m.CancelTree("bg_404") != 0 || m.CancelTree(ids[0]) != 0 {
				t.Fatal("what is unknown or has ended was asked to end")
			}
		},
		"cancel_tree_ends_on_a_ring": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			for _, l := range []background.Lineage{{TaskID: "bg_1"}, {TaskID: "bg_0"}} {
				if _, err := m.Spawn(t.Context(), background.Spec{Thread: "a", Type: "x", Parent: l, Body: untilCancelled}); err != nil {
					t.Fatal(err)
				}
			}
			if n := m.CancelTree("bg_0"); n != 2 {
				t.Fatalf("%d of 2 were asked to end", n)
			}
		},
		"cancel_run_takes_what_the_run_started": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			ctx := background.WithLineage(t.Context(), background.Lineage{RunID: "run"})
			var ids []string
			for _, class := range []background.Class{background.Blocking, background.Service, background.Housekeeping} {
				id, err := m.Spawn(ctx, background.Spec{Thread: "a", Type: "x", Class: class, Body: func(ctx context.Context, task *background.Task) (any, error) {
					if class == background.Blocking {
						if _, err := m.Spawn(ctx, background.Spec{Thread: "b", Type: "x", Body: untilCancelled}); err != nil {
							return nil, err
						}
					}
					return untilCancelled(ctx, task)
				}})
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
			}
			synctest.Wait()
			if n := m.CancelRun("run"); n != 2 || m.CancelRun("other") != 0 || m.CancelRun("") != 0 {
				t.Fatalf("%d of 2 were asked to end", n)
			}
			wait(t, m, "b")
			if status(t, m, ids[1]).Status.Terminal() || status(t, m, ids[2]).Status.Terminal() {
				t.Fatal("a service or housekeeping ended with the run")
			}
		},
		"cancellation_token_check": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			before, after := make(chan error, 1), make(chan error, 1)
			id := spawn(t, m, "a", func(ctx context.Context, _ *background.Task) (any, error) {
				before <- ctx.Err()
				<-ctx.Done()
				after <- ctx.Err()
				return nil, ctx.Err()
			})
			if err := <-before; err != nil {
				t.Fatalf("cancelled before it was asked: %v", err)
			}
			m.Cancel(id)
			m.Cancel(id)
			if err := <-after; !errors.Is(err, context.Canceled) {
				t.Fatalf("the body saw %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, test)
		})
	}
}

// TestIDsAreUnique makes ids with two managers at once, as two processes would.
func TestIDsAreUnique(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		seen, last := map[string]bool{}, ""
		one, two := newManager(t, background.Config{Ledger: l}), newManager(t, background.Config{Ledger: l})
		for range 200 {
			for _, m := range []*background.Manager{one, two} {
				id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil })
				if seen[id] || !strings.HasPrefix(id, "bg_") || id <= last {
					t.Fatalf("id %q after %q", id, last)
				}
				seen[id], last = true, id
			}
		}
		closeManager(t, one)
		closeManager(t, two)
	})
}
