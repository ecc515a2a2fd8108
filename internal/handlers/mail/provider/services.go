package provider

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// mailgun takes the message as it is.
func (s *Sender) mailgun(ctx context.Context, m Mail) (*http.Request, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, to := range m.Recipients {
		if err := form.WriteField("to", to); err != nil {
			return nil, err
		}
	}
	file, err := form.CreateFormFile("message", "message.mime")
	if err != nil {
		return nil, err
	}
	if _, err := file.Write(m.Text); err != nil {
		return nil, err
	}
	if err := form.Close(); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost,
		s.base+"/v3/"+url.PathEscape(s.a.User)+"/messages.mime", &body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.SetBasicAuth("api", s.a.Key)
	return r, nil
}

// ses takes the message as it is, in a request signed by Amazon's version 4.
func (s *Sender) ses(ctx context.Context, m Mail) (*http.Request, error) {
	type raw struct{ Data []byte }
	r, err := s.asJSON(ctx, "/v2/email/outbound-emails", map[string]any{
		"FromEmailAddress": m.From,
		"Destination":      map[string]any{"ToAddresses": m.Recipients},
		"Content":          map[string]any{"Raw": raw{m.Text}},
	})
	if err != nil {
		return nil, err
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, body); err != nil {
		return nil, err
	}
	credentials := aws.Credentials{AccessKeyID: s.a.User, SecretAccessKey: s.a.Key}
	return r, v4.NewSigner().SignHTTP(ctx, credentials, r, hex.EncodeToString(sum.Sum(nil)), "ses", s.a.Region, s.now())
}

// postmark takes the parts. It keeps our Message-ID, and reports it with bounces.
func (s *Sender) postmark(ctx context.Context, m Mail) (*http.Request, error) {
	p, err := readParts(m)
	if err != nil {
		return nil, err
	}
	type header struct{ Name, Value string }
	type attachment struct {
		Name, ContentType, ContentID string
		Content                      []byte
	}
	value := struct {
		From, To, Cc, Bcc, ReplyTo, Subject, TextBody string `json:",omitempty"`
		HTMLBody                                      string `json:"HtmlBody,omitempty"`
		Headers                                       []header
		Attachments                                   []attachment `json:",omitempty"`
		Metadata                                      map[string]string
	}{From: p.from, To: list(p.to), Cc: list(p.cc), Bcc: list(p.bcc), ReplyTo: list(p.replyTo), Subject: p.subject,
		HTMLBody: p.html, TextBody: p.text, Metadata: map[string]string{metadataKey: m.ID},
		Headers: []header{{"X-PM-KeepID", "true"}, {"Message-ID", "<" + m.ID + ">"}}}
	for _, h := range p.headers {
		value.Headers = append(value.Headers, header{h.name, h.value})
	}
	for _, f := range p.files {
		a := attachment{Name: f.name, ContentType: f.kind, Content: f.content}
		if f.cid != "" {
			a.ContentID = "cid:" + f.cid
		}
		value.Attachments = append(value.Attachments, a)
	}
	r, err := s.asJSON(ctx, "/email", value)
	if err == nil {
		r.Header.Set("X-Postmark-Server-Token", s.a.Key)
	}
	return r, err
}

// metadataKey names our Message-ID in what a service keeps beside a mail. Postmark
// takes at most 20 characters.
const metadataKey = "message_id"

// brevo takes the parts. It writes another Message-ID, and reports ours as a header.
func (s *Sender) brevo(ctx context.Context, m Mail) (*http.Request, error) {
	p, err := readParts(m)
	if err != nil {
		return nil, err
	}
	type person struct {
		Email string `json:"email"`
		Name  string `json:"name,omitempty"`
	}
	persons := func(list []mailbox) (all []person) {
		for _, a := range list {
			all = append(all, person{a.address, a.name})
		}
		return all
	}
	type attachment struct {
		Name    string `json:"name"`
		Content []byte `json:"content"`
	}
	value := map[string]any{"sender": person{p.sender.address, p.sender.name}, "subject": p.subject}
	for name, list := range map[string][]mailbox{"to": p.to, "cc": p.cc, "bcc": p.bcc} {
		if len(list) > 0 {
			value[name] = persons(list)
		}
	}
	if len(p.replyTo) > 0 {
		value["replyTo"] = persons(p.replyTo)[0]
	}
	if p.html != "" {
		value["htmlContent"] = p.html
	}
	if p.text != "" {
		value["textContent"] = p.text
	}
	headers := map[string]string{"X-Mailin-custom": metadataKey + ":" + m.ID}
	for _, h := range p.headers {
		headers[h.name] = h.value
	}
	value["headers"] = headers
	var files []attachment
	for _, f := range p.files {
		files = append(files, attachment{f.name, f.content})
	}
	if len(files) > 0 {
		value["attachment"] = files
	}
	r, err := s.asJSON(ctx, "/v3/smtp/email", value)
	if err == nil {
		r.Header.Set("Api-Key", s.a.Key)
	}
	return r, err
}
