// Package egress makes HTTP requests on behalf of a sandboxed plugin, under a
// policy that the operator granted. The plugin may be hostile, and so may the
// servers that it talks to.
//
// A [Broker] belongs to one plugin. [Broker.Do] either returns the whole
// [Response], or a [Refusal] that names the rule that forbade it and what to do, or
// an error of the network.
//
// # What a request passes
//
// Nothing is sent before the request has passed all of this, and each redirect
// passes it again:
//
//   - The URL: http or https, no user and password, an ASCII host (names beyond
//     ASCII are written in punycode), no unusual spelling of an address.
//   - The policy's hosts. A pattern without a port means the scheme's own port;
//     ":*" means any port. "*" means any public host: it never reaches an address
//     of Policy.Private, because anybody can point a name there.
//   - The method and the headers. Headers that frame the message, name a proxy
//     or ask for compression belong to the broker.
//   - The budgets: requests and bytes for each minute, requests at once.
//   - The addresses. A name is resolved once for each connection, every address
//     of the answer is checked, and the connection goes to an address that was
//     checked. One bad address refuses the whole answer: a public name that also
//     points inside is an attack or a mistake, and choosing the good one would
//     hide both. A connection is used again only for the same scheme, host and
//     port, within half a minute.
//
// The broker speaks HTTP/1.1 only, knows no proxy, keeps no cookies, sends no
// Referer of its own, asks for no compression and never decompresses.
//
// # Secrets
//
// A plugin holds handles, not values. In a header value the text
// {{secret.NAME}} is replaced by the value just before it is sent, and
// {{basic.NAME}} by the base64 of a value of the form user:password. It is sent
// only to the secret's own hosts, in its own headers, over https unless the
// secret says otherwise.
//
// A value that comes back is replaced by its handle before the plugin sees it:
// as it is, in base64 at any alignment, in hexadecimal, percent-encoded, escaped
// for JSON or HTML, or several of these on top of each other. This holds for every value that the broker
// has sent, in later responses too, and for the value of each secret at the first
// response: the broker of an earlier process may have sent it. It is a guard against
// servers that echo what they were sent. A server that works together with the plugin can
// always encode a value in another way: what bounds that is Secret.Hosts. So
// that nothing slips past, a request with a secret may not ask for a range,
// and a broker with secrets refuses responses that are compressed or a piece of one.
//
// # Concurrency
//
// A [Broker] is safe for concurrent use. It starts a goroutine for each request
// and for each idle connection; those of requests end before Do returns, the others with Close.
// The caller of New calls [Broker.Close]. Functions of the Config
// (resolver, secret values, clock) are called concurrently and must return when
// their context ends.
//
// # Errors
//
// New names the field that is wrong. Do returns a [*Refusal], found with
// errors.AsType; or an error that wraps [ErrResolve], [ErrConnect], [ErrTLS] or
// [ErrProtocol]; or one that wraps the error of the caller's context. No error
// holds a query string, a secret, or an address that a name resolved to.
package egress
