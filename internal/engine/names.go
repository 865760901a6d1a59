package engine

// Import modules that a host offers. The names are those of the contract with
// guests, which this package does not import.
const (
	ModuleEnv  = "extism:host/env"
	ModuleHost = "mortise:host/1"
	ModuleWASI = "wasi_snapshot_preview1"

	// ModuleUser is where the Extism PDKs look for functions of an embedder.
	ModuleUser = "extism:host/user"

	ImportInputRead   = "input_read"
	ImportOutputWrite = "output_write"
)
