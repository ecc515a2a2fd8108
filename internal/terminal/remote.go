package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// Remote asks a service by its API.
type Remote struct {
	base   *url.URL
	token  string
	client *http.Client
	now    func() time.Time
}

// NewRemote is the service at an address, asked with a token of the scope read.
func NewRemote(address, token string, now func() time.Time) (*Remote, error) {
	base, err := url.Parse(strings.TrimSuffix(address, "/"))
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil {
		return nil, errors.New("the address must be like https://shop.example.com, without name and password")
	}
	if token == "" {
		return nil, errors.New("set CMSJOBS_TOKEN to a token of the scope read: cmsjobs token create top --scopes read")
	}
	return &Remote{base: base, token: token, now: now, client: &http.Client{Timeout: patience,
		// a redirect could lead the token to another host
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// maxAnswer is the longest answer that is read.
const maxAnswer = 8 << 20

// get asks for a path of /api/v1; an id in it is escaped.
func (r *Remote) get(ctx context.Context, path string, query url.Values, into any) error {
	to := r.base.String() + "/api/v1/" + path
	if len(query) > 0 {
		to += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+r.token)
	request.Header.Set("Accept", "application/json")
	response, err := r.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", to, err)
	}
	if response.StatusCode != http.StatusOK {
		return refused(to, response.StatusCode, body)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the answer of %s is not that of cmsjobs: %w", to, err)
	}
	return nil
}

// refused is why a service did not answer, in its words where it has some.
func refused(to string, status int, body []byte) error {
	var problem struct{ Detail string }
	_ = json.Unmarshal(body, &problem) // what is no JSON has no detail
	err := fmt.Errorf("%s answers %d: %s", to, status, problem.Detail)
	if status == http.StatusNotFound {
		err = fmt.Errorf("%w: %w", jobs.ErrNotFound, err)
	}
	return err
}

// Figures implements Source.
func (r *Remote) Figures(ctx context.Context) (Figures, error) {
	f := Figures{Site: r.base.Host, At: r.now().UTC()}
	var workers ops.Items[ops.WorkerView]
	var running struct{ Items []ops.JobView }
	var failures ops.Items[ops.FailureGroupView]
	var schedules ops.Items[ops.ScheduleView]
	var conditions struct{ Items []Condition }
	for _, of := range []struct {
		path  string
		query url.Values
		into  any
	}{
		{"jobs/stats", nil, &f.Stats}, {"workers", nil, &workers}, {"series", url.Values{"range": {"1h"}}, &f.Hour},
		{"jobs", url.Values{"status": {"processing"}, "limit": {strconv.Itoa(maxRunning)}}, &running},
		{"failed/groups", nil, &failures}, {"schedules", nil, &schedules}, {"conditions", nil, &conditions},
	} {
		err := r.get(ctx, of.path, of.query, of.into)
		if err != nil && !(of.path == "schedules" && errors.Is(err, jobs.ErrNotFound)) { // it may have none
			return f, err
		}
	}
	f.Workers, f.Running, f.Schedules = workers.Items, running.Items, schedules.Items
	f.Failures = failures.Items[:min(len(failures.Items), maxFailures)]
	for _, c := range conditions.Items {
		if c.Active {
			f.Conditions = append(f.Conditions, c)
		}
	}
	return f, nil
}

// Jobs implements Source.
func (r *Remote) Jobs(ctx context.Context, f ops.Filter, limit int) ([]ops.JobView, error) {
	var list struct{ Items []ops.JobView }
	query := f.Query()
	query.Set("limit", strconv.Itoa(limit))
	err := r.get(ctx, "jobs", query, &list)
	return list.Items, err
}

// Job implements Source.
func (r *Remote) Job(ctx context.Context, id string) (f JobFigures, err error) {
	var log ops.LogView
	if err = r.get(ctx, "jobs/"+url.PathEscape(id), nil, &f.Job); err == nil {
		err = r.get(ctx, "jobs/"+url.PathEscape(id)+"/log", nil, &log)
	}
	f.Lines = log.Lines
	return f, err
}
