package provider_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/provider"
)

// examples are what the services send, cut to the fields that are read.
var examples = map[string]struct {
	service, body string
	want          []provider.Report
}{
	"Postmark, a hard bounce": {provider.Postmark, `{"RecordType":"Bounce","ID":42,"Type":"HardBounce","TypeCode":1,
		"MessageID":"00000000-0000-0000-0000-000000000000","Metadata":{"message_id":"id@example.org"},
		"Description":"The server was unable to deliver your message","Details":"smtp;550 unknown user",
		"Email":"gone@example.com","Inactive":true}`, []provider.Report{{Recipient: "gone@example.com",
		MessageID: "id@example.org", Hard: true,
		Detail: "The server was unable to deliver your message smtp;550 unknown user"}}},
	"Postmark, a full mailbox": {provider.Postmark, `{"RecordType":"Bounce","Type":"SoftBounce",
		"Email":"full@example.com"}`, []provider.Report{{Recipient: "full@example.com"}}},
	"Postmark, a complaint": {provider.Postmark, `{"RecordType":"SpamComplaint","Email":"angry@example.com"}`,
		[]provider.Report{{Recipient: "angry@example.com", Complaint: true}}},
	"Postmark, an opened mail": {provider.Postmark, `{"RecordType":"Open","Recipient":"a@example.com"}`, nil},
	"Mailgun, a hard bounce": {provider.Mailgun, `{"signature":{"timestamp":"1","token":"t","signature":"s"},
		"event-data":{"event":"failed","severity":"permanent","reason":"bounce","recipient":"gone@example.com",
		"delivery-status":{"code":550,"message":"5.1.1 no such user","description":"","enhanced-code":"5.1.1"},
		"message":{"headers":{"message-id":"id@example.org","to":"gone@example.com"}}}}`,
		[]provider.Report{{Recipient: "gone@example.com", MessageID: "id@example.org", Hard: true, Status: "5.1.1",
			Detail: "5.1.1 no such user"}}},
	"Mailgun, for now": {provider.Mailgun, `{"event-data":{"event":"failed","severity":"temporary","reason":"generic",
		"recipient":"full@example.com"}}`, []provider.Report{{Recipient: "full@example.com"}}},
	"Mailgun, a complaint": {provider.Mailgun, `{"event-data":{"event":"complained","recipient":"angry@example.com"}}`,
		[]provider.Report{{Recipient: "angry@example.com", Complaint: true}}},
	"Mailgun, delivered": {provider.Mailgun, `{"event-data":{"event":"delivered","recipient":"a@example.com"}}`, nil},
	"Brevo, a batch": {provider.Brevo, `[{"event":"hard_bounce","email":"gone@example.com","message-id":"<x@y>",
		"reason":"no such user","X-Mailin-custom":"message_id:id@example.org"},{"event":"delivered",
		"email":"a@example.com"},{"event":"spam","email":"angry@example.com"}]`,
		[]provider.Report{{Recipient: "gone@example.com", MessageID: "id@example.org", Hard: true,
			Detail: "no such user"}, {Recipient: "angry@example.com", Complaint: true}}},
	"Brevo, one": {provider.Brevo, ` {"event":"soft_bounce","email":"full@example.com"}`,
		[]provider.Report{{Recipient: "full@example.com"}}},
	"SES, a bounce": {provider.SES, `{"Type":"Notification","MessageId":"m","Message":"{\"notificationType\":\"Bounce\",
		\"bounce\":{\"bounceType\":\"Permanent\",\"bouncedRecipients\":[{\"emailAddress\":\"gone@example.com\",
		\"status\":\"5.1.1\",\"diagnosticCode\":\"smtp; 550 unknown\"}]},
		\"mail\":{\"commonHeaders\":{\"messageId\":\"<id@example.org>\"}}}"}`,
		[]provider.Report{{Recipient: "gone@example.com", MessageID: "id@example.org", Hard: true, Status: "5.1.1",
			Detail: "smtp; 550 unknown"}}},
	"SES, a complaint": {provider.SES, `{"Type":"Notification","Message":"{\"eventType\":\"Complaint\",\"complaint\":
		{\"complaintFeedbackType\":\"abuse\",\"complainedRecipients\":[{\"emailAddress\":\"angry@example.com\"}]}}"}`,
		[]provider.Report{{Recipient: "angry@example.com", Complaint: true, Detail: "abuse"}}},
	"SES, a delivery": {provider.SES, `{"Type":"Notification","Message":"{\"notificationType\":\"Delivery\"}"}`, nil},
}

func TestReports(t *testing.T) {
	for name, c := range examples {
		body := strings.ReplaceAll(strings.ReplaceAll(c.body, "\n", ""), "\t", "")
		got, confirm, err := provider.Reports(c.service, []byte(body))
		if err != nil || confirm != "" || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %q, %v, want %+v", name, got, confirm, err, c.want)
		}
	}
	for service, body := range map[string]string{provider.Postmark: `[]`, provider.Mailgun: ``, provider.Brevo: `[1]`,
		provider.SES: `{"Type":"Notification","Message":"x"}`} {
		if _, _, err := provider.Reports(service, []byte(body)); !errors.Is(err, provider.ErrUnreadable) {
			t.Errorf("%s takes %q: %v", service, body, err)
		}
	}
	if _, _, err := provider.Reports(provider.Brevo, []byte(`{"event":"spam","email":"x"}`)); !errors.Is(err,
		provider.ErrUnreadable) {
		t.Errorf("a report of nobody: %v", err)
	}
	if _, _, err := provider.Reports("pigeon", nil); err == nil {
		t.Error("an unknown service is read")
	}
}

// Only Amazon itself is asked to send: a stranger who knows the password cannot have
// us open an address of their choice.
func TestOnlyAmazonIsConfirmed(t *testing.T) {
	for at, good := range map[string]bool{
		"https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=1": true,
		"http://sns.eu-west-1.amazonaws.com/":                                     false,
		"https://sns.eu-west-1.amazonaws.com.evil.example/":                       false,
		"https://evil.example/sns.eu-west-1.amazonaws.com":                        false,
		"https://sns.eu-west-1.amazonaws.com:8080/":                               false,
		"https://169.254.169.254/":                                                false,
	} {
		_, confirm, err := provider.Reports(provider.SES, []byte(`{"Type":"SubscriptionConfirmation","SubscribeURL":"`+
			at+`"}`))
		if good != (err == nil && confirm == at) {
			t.Errorf("%s: %q, %v", at, confirm, err)
		}
	}
}

// FuzzReports holds that any bytes are read, and that each report names somebody.
func FuzzReports(f *testing.F) {
	for _, c := range examples {
		f.Add(c.service, []byte(c.body))
	}
	f.Fuzz(func(t *testing.T, service string, body []byte) {
		list, _, err := provider.Reports(service, body)
		if err != nil && len(list) > 0 {
			t.Errorf("an error with %d reports", len(list))
		}
		for _, r := range list {
			if !strings.Contains(r.Recipient, "@") {
				t.Errorf("a report of %q", r.Recipient)
			}
		}
	})
}
