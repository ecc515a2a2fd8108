package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Report is what a service says later about one mail.
type Report struct {
	Recipient string
	MessageID string // ours, without < and >; "" where the service does not say it
	// Hard says that the recipient gets no mail any more, Complaint that they reported it
	// as spam. Neither: it came back, and may be fixed by waiting.
	Hard, Complaint bool
	Status          string // RFC 3463, such as 5.1.1; "" when unknown
	Detail          string
}

// ErrUnreadable says that a body is not what the service sends.
var ErrUnreadable = errors.New("the body is not what this service sends")

// maxReports bounds one request.
const maxReports = 1000

// Reports reads the body of a service's webhook: mails that came back and complaints.
// Other events are none. confirm is an address that the service wants to be asked once,
// before it sends anything (Amazon's SNS); "" is none.
func Reports(service string, body []byte) (list []Report, confirm string, err error) {
	read, known := map[string]func([]byte) ([]Report, error){Postmark: postmarkReport, Mailgun: mailgunReport,
		Brevo: brevoReports}[service]
	switch {
	case service == SES:
		list, confirm, err = sesReport(body)
	case known:
		list, err = read(body)
	default:
		return nil, "", unknown(service)
	}
	if err == nil && slices.ContainsFunc(list, func(r Report) bool { return !strings.Contains(r.Recipient, "@") }) {
		err = errors.New("it names no recipient")
	}
	if err != nil {
		return nil, "", fmt.Errorf("%w (%s): %w", ErrUnreadable, service, err)
	}
	return list, confirm, nil
}

func postmarkReport(body []byte) ([]Report, error) {
	var e struct {
		RecordType, Type, Email, Description, Details string
		Inactive                                      bool
		Metadata                                      map[string]string
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, err
	}
	r := Report{Recipient: e.Email, MessageID: e.Metadata[metadataKey],
		Detail: strings.TrimSpace(e.Description + " " + e.Details)}
	switch e.RecordType {
	case "Bounce":
		r.Hard = e.Inactive || e.Type == "HardBounce" || e.Type == "BadEmailAddress"
	case "SpamComplaint":
		r.Complaint = true
	default:
		return nil, nil
	}
	return []Report{r}, nil
}

func mailgunReport(body []byte) ([]Report, error) {
	var e struct {
		Data struct {
			Event, Severity, Reason, Recipient string
			Delivery                           struct {
				Message, Description string
				Enhanced             string `json:"enhanced-code"`
			} `json:"delivery-status"`
			Message struct {
				Headers struct {
					ID string `json:"message-id"`
				}
			}
		} `json:"event-data"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, err
	}
	d := e.Data
	r := Report{Recipient: d.Recipient, MessageID: strings.Trim(d.Message.Headers.ID, "<>"),
		Status: d.Delivery.Enhanced,
		Detail: strings.TrimSpace(d.Delivery.Message + " " + d.Delivery.Description)}
	switch d.Event {
	case "failed":
		r.Hard = d.Severity == "permanent" && (d.Reason == "bounce" || d.Reason == "suppress-bounce")
	case "complained":
		r.Complaint = true
	default:
		return nil, nil
	}
	return []Report{r}, nil
}

func brevoReports(body []byte) (list []Report, err error) {
	var events []struct {
		Event, Email, Reason string
		Custom               string `json:"X-Mailin-custom"`
	}
	if strings.HasPrefix(strings.TrimSpace(string(body)), "{") { // batches are an option of the webhook
		body = []byte("[" + string(body) + "]")
	}
	if err := json.Unmarshal(body, &events); err != nil {
		return nil, err
	}
	if len(events) > maxReports {
		return nil, fmt.Errorf("%d events, at most %d are read", len(events), maxReports)
	}
	for _, e := range events {
		r := Report{Recipient: e.Email, Detail: e.Reason}
		if id, ours := strings.CutPrefix(e.Custom, metadataKey+":"); ours {
			r.MessageID = id
		}
		switch e.Event {
		case "hard_bounce", "invalid_email":
			r.Hard = true
		case "spam", "complaint":
			r.Complaint = true
		case "soft_bounce", "blocked", "error":
		default:
			continue
		}
		list = append(list, r)
	}
	return list, nil
}

// sesReport reads a notification of Amazon's SNS about SES.
func sesReport(body []byte) (list []Report, confirm string, err error) {
	var envelope struct{ Type, Message, SubscribeURL string }
	if err := json.Unmarshal(body, &envelope); err != nil {
		return nil, "", err
	}
	switch envelope.Type {
	case "SubscriptionConfirmation":
		at, err := url.Parse(envelope.SubscribeURL)
		if err != nil || at.Scheme != "https" || !snsHost.MatchString(at.Host) {
			return nil, "", errors.New("its SubscribeURL is no address of Amazon's SNS")
		}
		return nil, at.String(), nil
	case "Notification":
	default:
		return nil, "", nil
	}
	list, err = sesEvent([]byte(envelope.Message))
	return list, "", err
}

// snsHost is a host of Amazon's SNS: nothing else is asked.
var snsHost = regexp.MustCompile(`^sns\.[a-z0-9-]{1,40}\.amazonaws\.com(\.cn)?$`)

func sesEvent(text []byte) (list []Report, err error) {
	var e struct {
		NotificationType, EventType string
		Mail                        struct {
			CommonHeaders struct{ MessageID string }
		}
		Bounce struct {
			BounceType        string
			BouncedRecipients []struct{ EmailAddress, Status, DiagnosticCode string }
		}
		Complaint struct {
			ComplaintFeedbackType string
			ComplainedRecipients  []struct{ EmailAddress string }
		}
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, fmt.Errorf("its message: %w", err)
	}
	id := strings.Trim(e.Mail.CommonHeaders.MessageID, "<>")
	if len(e.Bounce.BouncedRecipients)+len(e.Complaint.ComplainedRecipients) > maxReports {
		return nil, fmt.Errorf("more than %d recipients", maxReports)
	}
	for _, r := range e.Bounce.BouncedRecipients {
		list = append(list, Report{Recipient: r.EmailAddress, MessageID: id, Status: r.Status,
			Detail: r.DiagnosticCode, Hard: e.Bounce.BounceType == "Permanent"})
	}
	for _, r := range e.Complaint.ComplainedRecipients {
		list = append(list, Report{Recipient: r.EmailAddress, MessageID: id, Complaint: true,
			Detail: e.Complaint.ComplaintFeedbackType})
	}
	return list, nil
}
