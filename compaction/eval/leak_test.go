package eval_test

import (
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/eval"
)

func TestWithdraw(t *testing.T) {
	t.Parallel()
	agent := func(text string) abi.Message { return say(abi.RoleAssistant, "a", text) }
	user := func(text string) abi.Message { return say(abi.RoleUser, "u", text) }
	probes := []eval.Probe{
		{ID: "1", Conversation: "c", Answers: []string{"src/claim.go"}},
		{ID: "2", Conversation: "c", Answers: []string{"src/gate.go"}},
	}
	for name, tc := range map[string]struct {
		messages []abi.Message
		leaks    int
	}{
		"the patch behind the run":    {[]abi.Message{user("fix it"), agent("I changed src/claim.go and src/gate.go"), user("--- a/src/claim.go\n--- a/src/gate.go")}, 2},
		"a part of the facts":         {[]abi.Message{user("fix it"), agent("I changed src/claim.go and src/gate.go"), user("look at src/gate.go")}, 0},
		"the agent has the last say":  {[]abi.Message{user("fix src/claim.go and src/gate.go"), agent("I changed src/claim.go and src/gate.go")}, 0},
		"there is no agent":           {[]abi.Message{user("there is src/claim.go"), user("and src/claim.go and src/gate.go")}, 0},
		"the result of the last call": {[]abi.Message{user("fix it"), agent("src/gate.go"), say(abi.RoleTool, "t", "src/claim.go src/gate.go")}, 2},
	} {
		s := eval.Set{Conversations: []eval.Conversation{{ID: "c", Messages: tc.messages}}, Probes: probes}
		leaks := eval.Withdraw(&s)
		if len(leaks) != tc.leaks || len(s.Probes) != len(probes)-tc.leaks {
			t.Errorf("%s: %d leaks, %d probes left", name, len(leaks), len(s.Probes))
		}
		for _, l := range leaks {
			if l.Message != len(tc.messages)-1 {
				t.Errorf("%s: %+v", name, l)
			}
		}
	}
}

// TestLeaksOfRealProbes: each run of mini-swe-agent ends with the patch, of whose
// files the probes are made. The other sets do not leak.
func TestLeaksOfRealProbes(t *testing.T) {
	t.Parallel()
	data := shared(t)
	for name, tc := range map[string]struct {
		pattern string
		leaks   int
		of      int
	}{
		"mini-swe-agent": {"mini-swe-agent/*/*.traj.json", 12, 12},
		"bfcl-memory":    {"bfcl-memory/*.json", 0, 48},
		"qmsum":          {"qmsum/*.jsonl", 0, 112},
		"tau-bench":      {"tau-bench/*.json", 0, 209},
	} {
		probes, err := eval.OpenProbes(filepath.Join(data, "probes", name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		set, err := eval.NewSet(name, read(t, filepath.Join(data, "transcripts", tc.pattern)), probes)
		if err != nil {
			t.Fatal(err)
		}
		if leaks := eval.Withdraw(&set); len(leaks) != tc.leaks || len(probes) != tc.of {
			t.Errorf("%s: %d of %d probes leak, want %d of %d", name, len(leaks), len(probes), tc.leaks, tc.of)
		}
	}
}
