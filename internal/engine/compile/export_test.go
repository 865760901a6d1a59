package compile

// ChildEnvironment is what a compiling process gets of the environment.
func ChildEnvironment() []string { return childEnv() }
