package providertest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm/providertest"
)

// A server answers what Reply says, rejects what the vendor rejects, and keeps the account.
func Example() {
	s, err := providertest.New(providertest.Config{Reply: func(q providertest.Query) providertest.Answer {
		return providertest.Answer{Content: []abi.ContentBlock{abi.Text("You said " + q.Messages[0].Text())}}
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = s.Close() }()
	for _, body := range []string{
		`{"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}]}`,
		`{"model": "gpt-5", "messages": []}`,
	} {
		r, err := http.NewRequest(http.MethodPost, s.URL()+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			fmt.Println(err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+s.Key())
		r.Close = true
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			fmt.Println(err)
			return
		}
		b, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		fmt.Println(answer.StatusCode, strings.Contains(string(b), "You said hi"))
	}
	for _, b := range s.Bills() {
		fmt.Println(b.Usage.CompletionTokens, b.Failed)
	}
	// Output:
	// 200 true
	// 400 false
	// 3 false
	// 0 true
}
