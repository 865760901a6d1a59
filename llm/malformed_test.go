package llm_test

import (
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

// Calls whose arguments are not JSON stay in the answer for a caller that can repair them,
// where the model wrote them and as it wrote them.
func TestKeepMalformed(t *testing.T) {
	t.Parallel()
	deltas := []llm.Delta{
		call("c1", "odd"), args("{oops"), block(), call("c2", "read"), args(`{"n":1}`), block(), call("c3", "odd"), args(`{"a":`), block(), stop(abi.StopToolUse),
	}
	got := ask(t.Context(), t, llm.ClientConfig{Model: streaming(turn{deltas: deltas})}, llm.Request{Model: "m", KeepMalformed: true})
	if got.err != nil {
		t.Fatal(got.err)
	}
	c := got.Response.Message.ToolCalls
	if len(c) != 3 || c[0].ID != "c1" || c[0].Arguments != "{oops" || c[1].ID != "c2" || c[2].Arguments != `{"a":` {
		t.Errorf("calls %+v", c)
	}
	if len(got.Malformed) != 2 || got.Malformed[1].ID != "c3" {
		t.Errorf("malformed %+v", got.Malformed)
	}
	want := "call_start c1,call_arguments c1,call_start c2,call_arguments c2,call_start c3,call_arguments c3,call_ready c2,call_ready c1,call_ready c3"
	if got.types() != want {
		t.Errorf("received %s\nwant  %s", got.types(), want)
	}
}

// A call that the output limit cut is not kept: the model continues from there.
func TestKeepMalformedCut(t *testing.T) {
	t.Parallel()
	cut := turn{deltas: []llm.Delta{text("a"), block(), call("c1", "odd"), args(`{"x"`), block(), stop(abi.StopMaxTokens)}}
	rest := turn{deltas: []llm.Delta{text("b"), stop(abi.StopEndTurn)}}
	got := ask(t.Context(), t, llm.ClientConfig{Model: streaming(cut, rest)}, llm.Request{Model: "m", KeepMalformed: true})
	if got.err != nil || len(got.Response.Message.ToolCalls) != 0 || len(got.Malformed) != 0 {
		t.Errorf("%+v, error %v", got.Answer, got.err)
	}
	if want := "text,call_start c1,call_arguments c1,call_cancel c1,text"; got.types() != want {
		t.Errorf("received %s\nwant  %s", got.types(), want)
	}
}
