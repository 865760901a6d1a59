;; An admission policy that refuses everything: the smallest guest that can
;; stand in for the quota policy. It describes itself in JSON.
(module
  (import "mortise:host/1" "output_write" (func $output_write (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"deny\",\"version\":\"1.0.0\",\"abi\":{\"min\":1,\"max\":1},\"summary\":\"Refuses every compaction.\",\"policies\":[\"quiet\"]}")
  (data (i32.const 256) "{\"allowed\":false,\"reason\":\"quiet_hours\",\"detail\":\"No compaction on this thread today.\"}")
  (func (export "describe") (result i32)
    (call $output_write (i32.const 0) (i32.const 116)) (i32.const 0))
  (func (export "admit") (result i32)
    (call $output_write (i32.const 256) (i32.const 87)) (i32.const 0)))
