package mail_test

import (
	"encoding/json"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail"
)

// A payload is checked before anything is sent: what is wrong with it is
// said at once, and no repeating would fix it.
func ExampleSendPayload() {
	for _, text := range []string{
		`{"to": "Zoë <zoe@example.com>", "template": "password-reset", "data": {"url": "https://example.com/reset/0a1b"}}`,
		`{"to": "zoe@example.com\r\nBcc: victim@example.net", "subject": "Hi", "body": "Hello"}`,
	} {
		var p mail.SendPayload
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(p.Validate())
	}
	// Output:
	// <nil>
	// the address "zoe@example.com\r\nBcc: victim@example.net" holds a line break or a control character
}
