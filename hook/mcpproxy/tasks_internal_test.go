package mcpproxy

import (
	"fmt"
	"testing"

	"github.com/mortise-dev/mortise/hook"
)

// A server that starts tasks without end does not fill the memory, and the newest ones are known.
func TestTasks(t *testing.T) {
	t.Parallel()
	p, err := New(Config{Engine: &hook.Engine{}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 * maxTasks {
		m, err := read(fmt.Appendf(nil, `{"id":%d,"result":{"task":{"taskId":"t%d"}}}`, i, i))
		if err != nil {
			t.Fatal(err)
		}
		p.started(m, &call{tool: "x"})
	}
	for i := range 3 * maxTasks {
		if c := p.task(fmt.Sprintf("t%d", i)); len(p.tasks) != maxTasks || (c.tool == "x") != (i >= 2*maxTasks) {
			t.Fatalf("%d tasks, number %d is %+v", len(p.tasks), i, c)
		}
	}
}
