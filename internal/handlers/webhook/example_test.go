package webhook_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/webhook"
)

// A receiver checks a message with the secret that it was given when the
// subscription was made.
func ExampleVerifier() {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	now := func() time.Time { return time.Unix(1614265330, 0) }
	check, err := webhook.Verifier(secret, now)
	if err != nil {
		fmt.Println(err)
		return
	}
	body := []byte(`{"test": 2432232314}`)
	header := http.Header{}
	header.Set(webhook.HeaderID, "msg_p5jXN8AQM9LWM0D4loKWxJek")
	header.Set(webhook.HeaderTimestamp, "1614265330")
	header.Set(webhook.HeaderSignature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	fmt.Println(check(header, body))
	fmt.Println(check(header, []byte(`{"test": 0}`)))
	// Output:
	// <nil>
	// the webhook's signature is missing, wrong or too old
}
