package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

// sendTo gives a message to one channel.
func (h *Handler) sendTo(ctx context.Context, p Payload) error {
	var channel *Channel
	for i := range h.c.Channels {
		if h.c.Channels[i].Name == p.Channel {
			channel = &h.c.Channels[i]
		}
	}
	if channel == nil {
		return jobs.SetResult(ctx, Result{Note: "there is no channel " + cut(p.Channel, 60) + " any more"})
	}
	if reached, err := h.reaches(ctx, *channel); err != nil {
		return fmt.Errorf("asking whom %s reaches: %w", channel, err)
	} else if !reached {
		return jobs.SetResult(ctx, Result{Note: "nobody was mailed: the CMS's setting admin_email and mail.admin are " +
			"empty"})
	}
	if err := h.by(ctx, *channel, p); err != nil {
		return fmt.Errorf("telling %s: %w", channel, err)
	}
	return jobs.SetResult(ctx, Result{Channel: channel.Name})
}

// reaches says whether a channel leads to somebody.
func (h *Handler) reaches(ctx context.Context, c Channel) (bool, error) {
	if c.Type != TypeMail || len(c.To) > 0 || h.c.Administrators == nil {
		return true, nil
	}
	list, err := h.c.Administrators(ctx)
	return len(list) > 0, err
}

func (h *Handler) by(ctx context.Context, c Channel, p Payload) error {
	switch c.Type {
	case TypeMail:
		data := map[string]any{"title": p.Title, "message": p.Message}
		if p.Count > 1 {
			data["count"] = p.Count
		}
		if p.URL != "" {
			data["url"] = p.URL
		}
		jobs.FollowUp(ctx, h.c.Mail(c.To, "job-failed", data).WithMetadata(causedHere))
		return nil
	case TypeCMS:
		n := cms.Notification{Title: p.Title, Description: p.text(400), ActionURL: p.URL}
		if p.URL != "" {
			n.ActionLabel = "View"
		}
		_, err := h.c.CMS.Notify(ctx, h.c.Now(), n)
		return err
	}
	address, body := h.request(c, p)
	return h.post(ctx, address, body)
}

// text is the message with how often it happened.
func (p Payload) text(limit int) string {
	text := p.Message
	if p.Count > 1 {
		text += fmt.Sprintf("\n(%d times since the last message)", p.Count)
	}
	return cut(strings.TrimSpace(text), limit)
}

// request is a channel's address and the JSON that it takes.
func (h *Handler) request(c Channel, p Payload) (string, any) {
	title := p.Title
	if h.c.Site != "" {
		title = "[" + h.c.Site + "] " + title
	}
	title = cut(strings.ReplaceAll(title, "\n", " "), 200)
	plain := strings.TrimSpace(title + "\n" + p.text(1500) + "\n" + p.URL)
	switch c.Type {
	case TypeSlack:
		// https://docs.slack.dev/messaging/formatting-message-text: these three are escaped
		return c.URL, map[string]any{"text": strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(plain)}
	case TypeDiscord:
		// An error's text must not ping anybody.
		return c.URL, map[string]any{"content": cut(plain, 2000), "allowed_mentions": map[string]any{
			"parse": []string{}}}
	case TypeTelegram:
		return strings.TrimRight(c.URL, "/") + "/sendMessage",
			map[string]any{"chat_id": c.Chat, "text": cut(plain, 4096), "link_preview_options": map[string]any{
				"is_disabled": true}}
	case TypeTeams:
		return c.URL, teamsCard(title, p)
	}
	return c.URL, map[string]any{"title": p.Title, "message": p.Message, "level": levelName(p.Level),
		"topic": p.topic(), "count": max(p.Count, 1),
		"url": p.URL, "site": h.c.Site, "at": h.c.Now().UTC().Format(time.RFC3339)}
}

func levelName(level string) string {
	if level == "" {
		return Info
	}
	return level
}

// teamsCard is the shape that Teams' workflows take: an adaptive card.
func teamsCard(title string, p Payload) any {
	card := map[string]any{
		"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
		"body": []any{
			map[string]any{"type": "TextBlock", "text": title, "weight": "Bolder", "wrap": true},
			map[string]any{"type": "TextBlock", "text": p.text(1500), "wrap": true},
		},
	}
	if p.URL != "" {
		card["actions"] = []any{map[string]any{"type": "Action.OpenUrl", "title": "View", "url": p.URL}}
	}
	return map[string]any{
		"type": "message", "attachments": []any{
			map[string]any{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}}}
}

// post sends JSON. Its errors name the host only: the path is the secret.
func (h *Handler) post(ctx context.Context, address string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return jobs.Permanent(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(text))
	if err != nil {
		return jobs.Permanent(errors.New("its address is not one of HTTP"))
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := h.c.Client.Do(r) //nolint:bodyclose // ReadBody closes it
	if err != nil {
		err = fmt.Errorf("%s: %w", r.URL.Host, outbound.WithoutAddress(err))
		if errors.Is(err, outbound.ErrRefused) {
			return jobs.Permanent(err)
		}
		return err
	}
	said, _ := outbound.ReadBody(answer) // for the error only
	status := answer.StatusCode
	err = fmt.Errorf("%s answered %d: %s", r.URL.Host, status, cut(string(said), 200))
	switch {
	case status >= 200 && status <= 299:
		return nil
	case status == http.StatusTooManyRequests:
		if seconds, e := strconv.ParseFloat(answer.Header.Get("Retry-After"), 64); e == nil && seconds >= 0 &&
			seconds < 3600 {
			return jobs.RetryAfter(err, time.Duration((seconds+1)*float64(time.Second)))
		}
		return err
	case status >= 400 && status <= 499 && status != http.StatusRequestTimeout:
		return jobs.Permanent(err)
	}
	return err
}
