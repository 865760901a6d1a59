package agent

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mortise-dev/mortise/abi"
)

// runtimeKeys begin the keys of the phase runtime's own state. It is no listener's
// business.
const runtimeKeys = "_runtime/"

// display is what the listener was shown of the state. Commits may come from other
// goroutines at any time.
type display struct {
	mu    sync.Mutex
	dirty map[string]bool

	// The rest belongs to the goroutine of the run. Keys are those of the last
	// snapshot and the deltas since; nil before the first snapshot.
	keys map[string]bool
	// stale is set when something changed since the last snapshot.
	stale bool
	stop  func()
}

// touched is called after commits.
func (d *display) touched(keys []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range keys {
		if strings.HasPrefix(k, runtimeKeys) {
			continue
		}
		if d.dirty == nil {
			d.dirty = make(map[string]bool)
		}
		d.dirty[k] = true
	}
}

// take returns the keys that changed, sorted.
func (d *display) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.dirty) == 0 {
		return nil
	}
	keys := slices.Sorted(maps.Keys(d.dirty))
	d.dirty = nil
	return keys
}

// watch begins to follow the state.
func (r *run) watch() error {
	stop, err := r.state.Watch(r.shown.touched)
	if err == nil {
		r.shown.stop = stop
	}
	return err
}

// showChange tells the listener what changed in the state: all of it at first, and then
// the keys that changed.
func (r *run) showChange(ctx context.Context) {
	keys := r.shown.take()
	var patch []PatchOp
	for _, k := range keys {
		value, ok := r.state.Kept(k)
		switch {
		case ok:
			patch = append(patch, PatchOp{Op: "add", Path: pointer(k), Value: value})
		case r.shown.keys[k]:
			patch = append(patch, PatchOp{Op: "remove", Path: pointer(k)})
		default: // of the run alone, or never shown
			continue
		}
		if r.shown.keys != nil {
			r.shown.keys[k] = ok
		}
	}
	if len(patch) == 0 {
		return
	}
	if r.shown.keys == nil {
		r.sendState(ctx)
		return
	}
	r.shown.stale = true
	r.send(ctx, Event{Type: EventStateDelta, Patch: patch})
}

// showState sends the listener the whole state, if it changed since it was last sent.
func (r *run) showState(ctx context.Context) {
	r.showChange(ctx)
	if r.shown.stale {
		r.sendState(ctx)
	}
}

func (r *run) sendState(ctx context.Context) {
	state := r.state.Export()
	maps.DeleteFunc(state, func(key string, _ any) bool { return strings.HasPrefix(key, runtimeKeys) })
	r.shown.stale, r.shown.keys = false, make(map[string]bool, len(state))
	for k := range state {
		r.shown.keys[k] = true
	}
	r.send(ctx, Event{Type: EventStateSnapshot, State: state})
}

// showMessages tells the listener the log, if there is something in it, or gone from
// it, of which no other event tells: what a plugin or the inbox brought.
func (r *run) showMessages(ctx context.Context) {
	size := r.thread.size()
	if size == r.told && !r.rewrote {
		return
	}
	r.told, r.rewrote = size, false
	r.send(ctx, Event{Type: EventMessagesSnapshot, Log: r.thread.snapshot()})
}

// showReasoning tells the listener what a provider wants to have back with the next
// request and no one else can read.
func (r *run) showReasoning(ctx context.Context, m *abi.Message) {
	for i := range m.Content {
		if b := &m.Content[i]; b.Type == abi.BlockThinking && b.Signature != "" {
			r.send(ctx, Event{Type: EventReasoningEncrypted, EncryptedValue: b.Signature})
		}
	}
}

// pointer is the JSON Pointer of a key.
func pointer(key string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
