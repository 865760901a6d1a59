;; A filter for a network proxy.
(module (import "env" "proxy_log" (func (param i32 i32 i32) (result i32))) (func (export "proxy_abi_version_0_2_1")))
