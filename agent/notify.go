package agent

import (
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// fromPlugin reports whether a plugin left the notification.
func fromPlugin(n abi.Notice) bool {
	return n.Kind == abi.NoticeCustom && n.Housekeeping && strings.HasPrefix(n.TaskID, phases.NotifiedBy)
}

// notify stores notifications of plugins for the next step, of this run or another. They are
// part of the checkpoints until then.
func (t *Thread) notify(notices []abi.Notice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notified = append(t.notified, notices...)
}

// takeNotified returns what plugins left for the step that begins.
func (t *Thread) takeNotified() []abi.Notice {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := t.notified
	t.notified = nil
	return taken
}

// waiting counts the notifications of plugins.
func (t *Thread) waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.notified)
}

// restoreHeld restores the notifications of a checkpoint. The caller holds the lock.
func (t *Thread) restoreHeld(notices []abi.Notice) {
	t.box.PutBack(slices.DeleteFunc(slices.Clone(notices), fromPlugin)...)
	for _, n := range notices {
		if fromPlugin(n) {
			t.notified = append(t.notified, n)
		}
	}
}
