;; Prints a line and adds all the memory that there is in each run. It describes itself in JSON.
(module
  (import "mortise:host/1" "output_write" (func $write (param i32 i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"prints\",\"version\":\"1.0.0\",\"abi\":{\"min\":1,\"max\":1},\"hooks\":[{\"phase\":\"run_start\",\"mode\":\"observe\"}]}")
  (data (i32.const 512) "{}")
  (data (i32.const 520) "\10\02\00\00\07\00\00\00hello!\0a")
  (func (export "describe") (result i32) (call $write (i32.const 0) (i32.const 108)) (i32.const 0))
  (func (export "on_phase") (result i32)
    (drop (call $fd_write (i32.const 1) (i32.const 520) (i32.const 1) (i32.const 600)))
    (loop $more (br_if $more (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
    (call $write (i32.const 512) (i32.const 2)) (i32.const 0)))
