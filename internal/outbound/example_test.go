package outbound_test

import (
	"errors"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

// The zero Options are strict: https only, public hosts only.
func ExampleNew() {
	client := outbound.New(outbound.Options{UserAgent: "cmsjobs"})
	for _, address := range []string{"https://169.254.169.254/latest/meta-data/", "https://[::ffff:127.0.0.1]/",
		"http://example.com/"} {
		_, err := client.Get(address)
		fmt.Println(errors.Is(err, outbound.ErrRefused))
	}
	// Output:
	// true
	// true
	// true
}
