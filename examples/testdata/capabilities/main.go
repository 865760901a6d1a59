// Command capabilities is a guest that does one thing through the host for each call
// of a tool, and says what came of it. A test builds it.
package main

import (
	"errors"
	"fmt"
	"strings"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/capability"
	"github.com/mortise-dev/mortise/sdk/go/http"
	"github.com/mortise-dev/mortise/sdk/go/kv"
	"github.com/mortise-dev/mortise/sdk/go/model"
	"github.com/mortise-dev/mortise/sdk/go/plugin"
)

func init() { //nolint:gochecknoinits // a guest registers before the host calls it
	plugin.Register(plugin.Plugin{
		Description: mortise.Description{Name: "capabilities", Version: "1.0.0"},
		CallTool: func(c *mortise.ToolRequest) (*mortise.ToolReply, error) {
			text, err := do(c.Name, mortise.StringOr(c.Arguments, "a", ""), mortise.StringOr(c.Arguments, "b", ""))
			var refusal *capability.Error
			if errors.As(err, &refusal) {
				text = "code " + refusal.Code.Error() + "; " + refusal.Text
			} else if err != nil {
				return nil, err
			}
			return &mortise.ToolReply{Status: mortise.ToolSuccess, Message: text}, nil
		},
	})
}

func main() {}

func do(what, a, b string) (string, error) {
	switch what {
	case "get":
		value, found, err := kv.Get(a)
		return fmt.Sprintf("%q %v", value, found), err
	case "set":
		return "set", kv.Set(a, []byte(b))
	case "delete":
		was, err := kv.Delete(a)
		return fmt.Sprint(was), err
	case "list":
		var keys []string
		for key, err := range kv.List(a) {
			if err != nil {
				return "", err
			}
			keys = append(keys, key)
		}
		return fmt.Sprint(len(keys)) + " " + strings.Join(keys[:min(3, len(keys))], ","), nil
	case "ask":
		answer, err := model.Ask([]byte(a))
		return fmt.Sprintf("%q", answer), err
	case "post":
		r, err := http.Do(http.Request{Method: "POST", URL: a, Header: map[string]string{"X-Guest": "\"quoted\" é"}, Body: []byte(b)})
		return fmt.Sprintf("%d %q %s", r.Status, r.Header["x-server"], r.Body), err
	}
	return "", errors.New("no such thing: " + what)
}
