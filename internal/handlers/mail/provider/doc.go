// Package provider hands mails to the HTTP interfaces of mail services (Postmark,
// Mailgun, Brevo, Amazon SES) and reads what they report about them later.
//
// It composes nothing: a mail comes as the message that SMTP would carry. Postmark and
// Brevo take no messages; its parts are read again for them.
//
// Invariants: only the addresses of the envelope get a mail, whatever its header says;
// an Error says whether the mail may have been taken; keys are in no error.
//
// The facts are those of the services' own references: Postmark "Email API" and
// "Webhooks", Mailgun "Send an email in MIME format" and "Webhooks", Brevo "Send a
// transactional email" and "Transactional webhooks", Amazon SES API v2 "SendEmail" and
// "Amazon SNS notification contents".
package provider
