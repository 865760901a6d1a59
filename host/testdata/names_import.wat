;; Imports that nobody offers, with names that fool a terminal, a log or who reads.
(module
  (import "a\00b\1b[2J\0d\0a" "\e2\80\aegnp.exe" (func))
  (import "mortise:host/1" "\1b]0;owned\07" (func))
  (func (export "run") (result i32) (i32.const 0)))
