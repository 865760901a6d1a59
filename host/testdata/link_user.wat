;; Imports a function from where the Extism PDKs look for those of an embedder.
(module
  (import "extism:host/user" "code" (func $code (result i32)))
  (func (export "run") (result i32) (call $code)))
