package secret_test

import (
	"fmt"

	"github.com/mortise-dev/mortise/sdk/go/secret"
)

func Example() {
	fmt.Println("Bearer " + secret.Ref("TOKEN"))
	fmt.Println("Basic " + secret.Basic("LOGIN"))
	// Output:
	// Bearer {{secret.TOKEN}}
	// Basic {{basic.LOGIN}}
}
