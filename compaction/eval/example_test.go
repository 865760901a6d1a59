package eval_test

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/eval"
)

// Two rules are measured on a conversation with two facts. The index of
// identifiers keeps the strings and loses what they are about.
func ExampleRun() {
	say := func(id, text string) abi.Message {
		return abi.Message{ID: id, Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(text)}}
	}
	set := eval.Set{
		Name: "notes",
		Conversations: []eval.Conversation{{ID: "n1", Messages: []abi.Message{
			say("m1", "The gate opens with code K417 on weekdays."),
			say("m2", "We talked about the weather for a while, and about lunch, and then about nothing in particular."),
			say("m3", "You can leave a parcel in locker B22 behind the house."),
		}}},
		Probes: []eval.Probe{
			{ID: "gate", Conversation: "n1", Question: "Which code opens the gate?", Answers: []string{"K417"}},
			{ID: "parcels", Conversation: "n1", Question: "Which locker takes a parcel?", Answers: []string{"B22"}},
		},
	}
	quarter := eval.Budget{Share: 0.25}
	report, err := eval.Run(context.Background(), eval.Config{
		Sets: []eval.Set{set}, Contenders: eval.Baselines(), Budgets: []eval.Budget{quarter},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"last-n", "index"} {
		c, _ := report.Find("notes", name, quarter, 1, "")
		fmt.Printf("%s: literal %.2f, grounded %.2f\n", name, c.Literal, c.Grounded)
	}
	// Output:
	// last-n: literal 0.50, grounded 0.50
	// index: literal 1.00, grounded 0.00
}
