package sqlitestore_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// TestPlans holds that each statement finds its rows by a key, and sorts nothing.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := open(t, fresh(t))
	for name, text := range sqlitestore.Statements() {
		plan, err := s.Plan(t.Context(), text)
		must(t, err)
		if strings.Contains(plan, "SCAN ") && !strings.Contains(plan, "SCAN CONSTANT ROW") || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s: %s\n%s", name, text, plan)
		}
	}
}
