package ledger_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/mortise-dev/mortise/compaction/ledger"
)

func TestRB(t *testing.T) {
	for i, w := range windows(t, 8)[:6] {
		l := ledger.New()
		l.Add(w.before...)
		s := l.State()
		a := ledger.Render(&s, len(w.vendor))
		r, ok := ledger.ReadBack(a)
		b := ledger.Render(&r, len(w.vendor))
		fmt.Println(ok, len(a), len(b))
		os.WriteFile(fmt.Sprintf("/tmp/rb%d.a", i), []byte(a), 0o600)
		os.WriteFile(fmt.Sprintf("/tmp/rb%d.b", i), []byte(b), 0o600)
	}
}
