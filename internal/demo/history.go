package demo

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/handlers/analytics"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail"
	"github.com/cmsjobs/cmsjobs/internal/jobs"

	"github.com/cmsjobs/cmsjobs/internal/app/probe"
)

// StartReceiver takes the demo's webhooks on this machine: nothing leaves it.
func StartReceiver() (address string, stop func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("opening a port for the demo's webhooks: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, 1<<20)) // what is not read is not missed
			fmt.Fprintln(w, "received")
		})}
	go func() { _ = server.Serve(l) }() // it ends by Close
	return "http://" + l.Addr().String() + "/hook", server.Close, nil
}

// accessLog is what a web server would have written within the days of the past: more
// visits from week to week, each of a few pages. Some reach a goal; events are what the
// script would have sent.
func (d Site) accessLog(now time.Time) (text string, events []analytics.View) {
	random, reached := rand.New(rand.NewPCG(7, 7)), rand.New(rand.NewPCG(8, 8))
	agents := []string{
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 " +
			"Safari/537.36",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) " +
			"Version/17.5 Mobile/15E148 Safari/604.1",
		"Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0",
		"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
	}
	referrers := []string{"-", "-", "https://www.google.com/", "https://news.ycombinator.com/", "https://t.co/abc"}
	queries := []string{"", "", "", "", "", "?utm_source=newsletter&utm_medium=email&utm_campaign=autumn",
		"?utm_source=facebook&utm_medium=social"}
	type line struct {
		at   time.Time
		text string
	}
	var lines []line
	for i := range d.visits {
		gone := math.Pow(float64(i)/float64(d.visits), 0.8) // of the days
		at := now.Add(-time.Duration((1 - gone) * pastDays * 24 * float64(time.Hour))).UTC()
		visitor, agent := random.IntN(1200), agents[random.IntN(len(agents))]
		query, referrer := queries[random.IntN(len(queries))], referrers[random.IntN(len(referrers))]
		address := fmt.Sprintf("198.51.%d.%d", 100+visitor/250, 1+visitor%250)
		view := func(path string) {
			lines = append(lines, line{at, fmt.Sprintf("%s - - [%s] \"GET %s%s HTTP/1.1\" 200 5120 \"%s\" \"%s\"\n",
				address, at.Format("02/Jan/2006:15:04:05 -0700"), path, query, referrer, agent)})
		}
		for range 1 + int(random.ExpFloat64()*1.6) {
			if at.After(now) {
				break
			}
			path := fmt.Sprintf("/blog/post-%d", 1+int(random.ExpFloat64()*6))
			view(path)
			event := goalEvents[reached.IntN(len(goalEvents))]
			if event != "" && !strings.Contains(agent, "Googlebot") {
				events = append(events, analytics.View{At: at.Add(5 * time.Second), Host: d.host, Path: path,
					Event: event, Address: address, Agent: agent})
			}
			at = at.Add(time.Duration(8+random.IntN(180)) * time.Second)
			query, referrer = "", d.url()+"/"
		}
		if reached.IntN(25) == 0 && !at.After(now) {
			view("/contact")
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	var log strings.Builder
	for _, l := range lines {
		log.WriteString(l.text)
	}
	return log.String(), events
}

// goalEvents are what follows a view of the demo: mostly nothing.
var goalEvents = [40]string{"Signup", "Signup", "Download", "Share"}

// AddHistory gives the pages something to show: 30 days of visits, runs and failures,
// and, where the site has a shop, jobs of PHP's.
func AddHistory(ctx context.Context, r *app.Services, site Site, now time.Time) error {
	name := filepath.Join(site.Dir, "storage", "logs", "access.log")
	if _, err := os.Stat(name); err == nil {
		return nil // an earlier run of the demo did it
	}
	log, events := site.accessLog(now)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(name, []byte(log), 0o644); err != nil {
		return err
	}
	if _, err := r.Handlers.Analytics.Import(ctx, analytics.Log{Name: name}, strings.NewReader(log),
		func(int64) {}); err != nil {
		return fmt.Errorf("reading the demo's access log: %w", err)
	}
	if _, err := r.Handlers.Analytics.Store(ctx, events); err != nil { // by the salts that the log had
		return fmt.Errorf("storing the demo's events: %w", err)
	}
	if err := addPast(ctx, r, site, now); err != nil {
		return fmt.Errorf("adding what was done in the last 30 days: %w", err)
	}
	if !site.shop {
		return nil
	}
	if err := addPHP(ctx, r, now); err != nil {
		return fmt.Errorf("adding jobs of PHP's: %w", err)
	}
	if err := r.Handlers.Mail.Suppress(ctx, goneReader, mail.HardBounce, "550 5.1.1 mailbox does not exist",
		now.AddDate(0, 6, 0)); err != nil {
		return fmt.Errorf("suppressing an address: %w", err)
	}
	_, err := r.Enqueue(ctx, jobs.Spec{Type: probe.Kind.Name, Data: []byte(`{"fail":"the printer is out of paper"}`),
		MaxAttempts: 1})
	return err
}

// FreePort is http.listen of the demo: the usual port, or any where that is
// taken.
func FreePort() string {
	for _, address := range []string{"127.0.0.1:8090", "127.0.0.1:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		address = l.Addr().String()
		if l.Close() == nil {
			return address
		}
	}
	return "127.0.0.1:8090"
}
