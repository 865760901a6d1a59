package eval_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/compaction/eval"
)

func recordings() []eval.Recording {
	return []eval.Recording{
		{Name: "memory_customer.json", Conversations: []eval.Conversation{talk("s1", "one"), talk("s2", "two")}},
		{Name: "committee-val.jsonl", Conversations: []eval.Conversation{talk("0", "zero"), talk("1", "first")}},
		{Name: "academic-val.jsonl", Conversations: []eval.Conversation{talk("0", "null")}},
	}
}

func TestConversationsAreFound(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"s2":                          "two\n",
		"1":                           "first\n",
		"Committee/jsonl/val.jsonl:0": "zero\n",
		"academic:0":                  "null\n",
		"customer":                    "one\ntwo\n",
	} {
		s, err := eval.NewSet("s", recordings(), []eval.Probe{{ID: "p", Conversation: name, Answers: []string{"x"}}})
		if err != nil || len(s.Conversations) != 1 || s.Conversations[0].ID != name || eval.Flatten(s.Conversations[0].Messages) != want {
			t.Errorf("%s: %+v, %v", name, s.Conversations, err)
		}
	}
}

func TestConversationsThatAreNotFound(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"0":           `set "s": probe "p": conversation "0": 2 recordings fit; name one as FILE:ID`,
		"val":         "2 recordings fit",
		"committee:7": "no recording fits; there are memory_customer.json:s1",
		"other":       "no recording fits",
	} {
		_, err := eval.NewSet("s", recordings(), []eval.Probe{{ID: "p", Conversation: name, Answers: []string{"x"}}})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v does not say %q", name, err, says)
		}
	}
}

func TestJoinedIDsStayUnique(t *testing.T) {
	t.Parallel()
	s, err := eval.NewSet("s", recordings(), []eval.Probe{{ID: "p", Conversation: "customer", Answers: []string{"x"}}})
	if err != nil {
		t.Fatal(err)
	}
	if m := s.Conversations[0].Messages; m[0].ID != "m0" || m[1].ID != "s2/m0" {
		t.Errorf("ids %q and %q", m[0].ID, m[1].ID)
	}
}
