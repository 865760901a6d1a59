package mcpproxy

import (
	"fmt"
	"testing"

	"github.com/mortise-dev/mortise/hook"
)

// A server that starts tasks without end does not fill the memory.
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
	if c := p.task(fmt.Sprintf("t%d", 3*maxTasks-1)); len(p.tasks) != maxTasks || c.tool != "x" {
		t.Errorf("%d tasks, %+v", len(p.tasks), c)
	}
}
