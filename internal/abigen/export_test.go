package main

// Run is the command without its process.
var Run = run
