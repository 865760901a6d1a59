package wire_test

import (
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/wire"
)

func ExampleFormat() {
	format := wire.Detect([]byte(`{"name":"quiet","version":"1","abi":{"min":1,"max":1}}`))
	input, err := format.Marshal(&abi.ToolCall{ID: "c1", Name: "list", Arguments: map[string]any{"depth": int64(2)}})
	fmt.Println(string(input), err)

	var result abi.ToolResult
	err = format.Unmarshal([]byte(`{"status":"success","data":{"files":3}}`), &result)
	fmt.Printf("%s %v %v\n", result.Status, result.Data, err)
	// Output:
	// {"id":"c1","name":"list","arguments":{"depth":2}} <nil>
	// success map[files:3] <nil>
}

func ExampleFormat_Unmarshal_hostile() {
	// The header declares 2^31 entries. Nothing is taken for them.
	err := wire.MessagePack.Unmarshal([]byte("\x81\xa7updates\xdd\x80\x00\x00\x00"), &abi.Reply{})
	fmt.Println(err)
	// Output:
	// wire: msgpack: byte 9: declares 2147483648 entries where 0 bytes are left
}

func ExampleValue() {
	v, err := wire.Value(map[string]any{"limit": 3, "words": []string{"a", "b"}})
	fmt.Printf("%#v %v\n", v, err)
	// Output:
	// map[string]interface {}{"limit":3, "words":[]interface {}{"a", "b"}} <nil>
}
