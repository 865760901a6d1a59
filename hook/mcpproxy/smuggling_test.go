package mcpproxy_test

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/hook/mcpproxy"
)

// TestSmuggling: no form of a message gets a call past the gate.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	s := start(t, nil, guard())
	go s.write(s.toProxy,
		`{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{"name":"say","arguments":{"word":"bad"}}}`,
		`[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"say","arguments":{"word":"bad"}}}]`,
		`{"jsonrpc":"2.0","id":4,"method":"ping","method":"tools/call","params":{"name":"say","arguments":{"word":"bad"}}}`,
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"say","arguments":{"word":"bad"}}}`,
		// What a reader of a stream, of lines that end in any way, or of more than JSON takes for calls.
		`{"jsonrpc":"2.0","id":5,"method":"ping"} {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"say","arguments":{"word":"bad"}}}`,
		"{\"jsonrpc\":\"2.0\",\"id\":7,\n\"method\":\"tools/call\",\"params\":{\"name\":\"say\",\"arguments\":{\"word\":\"bad\"}}}",
		"{\"a\":\r{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tools/call\",\"params\":{\"name\":\"say\",\"arguments\":{\"word\":\"bad\"}}}\r}",
		`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"say","arguments":{"word":"bad","n":NaN}}}`,
		`[{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"say","arguments":{"word":"bad","n":NaN}}}]`,
		`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"other","name":"say","arguments":{"word":"bad"}}}`,
		"",
		`{"jsonrpc":"2.0","id":9,"method":"ping"}`,
	)
	go func() { _, _ = io.Copy(io.Discard, s.client) }()
	s.expect(s.server, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	s.expect(s.server, "")
	s.expect(s.server, `{"jsonrpc":"2.0","id":9,"method":"ping"}`)
}

// TestSmuggling_nested: a call with a field twice in its arguments is denied, whichever of them is read.
func TestSmuggling_nested(t *testing.T) {
	t.Parallel()
	s := start(t, nil, guard())
	for id, arguments := range []string{`{"word":"bad","word":"fine"}`, `{"word":"fine","deep":[{"a":{"x":1,"x":2}}]}`, `{"word":"fine","w\u006frd":"bad"}`} {
		s.write(s.toProxy, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"say","arguments":%s}}`, id, arguments))
		if line, err := s.client.ReadString('\n'); err != nil || !strings.Contains(line, "has a field twice") {
			t.Errorf("%s: %v %s", arguments, err, line)
		}
	}
	fine := `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"say","arguments":{"word":"fine","a":[{"word":"x"},{"word":"x"},"word","word"],"b":{"word":{}}}}}`
	s.write(s.toProxy, fine)
	s.expect(s.server, fine)
}

// TestSmuggling_results: no form of a message gets a result past the plugins that look at it, or a tool past its pin.
func TestSmuggling_results(t *testing.T) {
	t.Parallel()
	pins, err := mcpproxy.OpenPins(filepath.Join(t.TempDir(), "pins.json"), true, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, pins, redact())
	list := func(id int, result, want string) {
		t.Helper()
		s.write(s.toProxy, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, id))
		s.expect(s.server, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, id))
		go s.write(s.fromSrv, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, id, result), `{"jsonrpc":"2.0","method":"m"}`)
		if want != "" {
			s.expect(s.client, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, id, want))
		}
		s.expect(s.client, `{"jsonrpc":"2.0","method":"m"}`)
	}
	good := `{"tools":[{"name":"say","description":"harmless"}]}`
	list(1, good, good)
	list(2, `{"tools":[],"tools":[{"name":"say","description":"evil"}]}`, "")
	list(3, `{"tools":[{"name":"other","name":"say","description":"evil"}]}`, `{"tools":[]}`)
	if strings.Contains(s.log.String(), "description changed") {
		t.Error(s.log)
	}
	list(3, `{"tools":[{"name":"other","inputSchema":{"type":"object","properties":{"a":{"description":"x","description":"evil"}}}}]}`, `{"tools":[]}`)
	evil := `{"tools":[{"name":"say","Name":"other","description":"evil"}]}`
	list(4, evil, evil)
	s.write(s.toProxy, callLine("5", "fine"))
	if line, err := s.client.ReadString('\n'); err != nil || !strings.Contains(line, "changed the tool say") {
		t.Errorf("%v %s", err, line)
	}
	s.write(s.toProxy, `{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"new"}}`)
	s.expect(s.server, `{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"new"}}`)
	s.write(s.fromSrv, `{"jsonrpc":"2.0","id":6,"result":{"content":[{"type":"text","text":"hunter2","text":"x"}]}}`)
	s.expect(s.client, `{"jsonrpc":"2.0","id":6,"result":{"content":[{"type":"text","text":"mortise: the result is withheld, because it has a field twice"}],"isError":true}}`)
	s.write(s.fromSrv,
		`{"jsonrpc":"2.0","id":6,"result":{"content":[{"type":"text","text":"hunter2"}],"n":NaN}}`,
		`{"jsonrpc":"2.0","method":"x"} {"jsonrpc":"2.0","id":6,"result":{"content":[{"type":"text","text":"hunter2"}]}}`,
		`{"jsonrpc":"2.0","method":"end"}`,
	)
	s.expect(s.client, `{"jsonrpc":"2.0","method":"end"}`)
}

// TestSmuggling_spelled: a message whose members some readers take for those of JSON-RPC, whatever their case, is dropped, and so is an answer
// that is also a request.
func TestSmuggling_spelled(t *testing.T) {
	t.Parallel()
	const secret = `{"content":[{"type":"text","text":"hunter2"}]}`
	s := start(t, nil, guard(), redact())
	s.write(s.toProxy, callLine("5", "fine"))
	s.expect(s.server, callLine("5", "fine"))
	go s.write(s.fromSrv,
		`{"jsonrpc":"2.0","ID":5,"RESULT":`+secret+`}`,
		`{"jsonrpc":"2.0","id":5,"re\u017fult":`+secret+`}`,
		`{"jsonrpc":"2.0","id":5,"method":"x","result":`+secret+`}`,
		`{"jsonrpc":"2.0","id":5,"method":"x","error":{"code":1,"message":"hunter2"}}`,
		`[{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","Id":5,"Result":`+secret+`}]`,
		`{"jsonrpc":"2.0","method":"end"}`,
	)
	s.expect(s.client, `{"jsonrpc":"2.0","method":"x"}`)
	s.expect(s.client, `{"jsonrpc":"2.0","method":"end"}`)
	go s.write(s.toProxy,
		`{"jsonrpc":"2.0","ID":6,"METHOD":"tools/call","PARAMS":{"name":"say","arguments":{"word":"bad"}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"ping"}`,
	)
	s.expect(s.server, `{"jsonrpc":"2.0","id":7,"method":"ping"}`)
}

// TestSmuggling_pins: a list of tools cannot get past its pins under an id that a client takes for that of its request.
func TestSmuggling_pins(t *testing.T) {
	t.Parallel()
	pins, err := mcpproxy.OpenPins(filepath.Join(t.TempDir(), "pins.json"), true, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, pins)
	s.write(s.toProxy, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	s.expect(s.server, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	go s.write(s.fromSrv,
		`{"jsonrpc":"2.0","id":"1","result":{"tools":[{"name":"say","description":"evil"}]}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"Tools":[{"name":"say","description":"evil"}]}}`,
		`{"jsonrpc":"2.0","method":"end"}`,
	)
	s.expect(s.client, `{"jsonrpc":"2.0","method":"end"}`)
}
