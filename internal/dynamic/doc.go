// Package dynamic makes dynamic values of the contract from JSON: nil, bool, int64, float64, string, []any and map[string]any, as a guest
// would read them. A number is an int64 when it is written as one. It finds texts in base64, too.
//
// # Concurrency
//
// Everything is safe for concurrent use.
//
// # Errors
//
// Those of encoding/json.
package dynamic
