// Command pdk is the hook of the benchmarks as it is written with an Extism plugin
// kit for Go: input and output in words of eight bytes, and encoding/json.
package main

func main() {}
