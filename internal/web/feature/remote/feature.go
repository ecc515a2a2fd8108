package remote

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/remote"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// Port keeps the workers of other programs; *remote.Hub does.
type Port interface {
	Register(ctx context.Context, owner string, r remote.Registration) (remote.Registered, error)
	Claim(ctx context.Context, owner, id string, limit int, wait time.Duration) ([]remote.Handed, remote.Orders, error)
	Beat(owner, id string, beats []remote.Beat) ([]remote.Status, remote.Orders, error)
	End(ctx context.Context, owner, id, lease string, o remote.Outcome) error
	Leave(owner, id string) error
}

const needsQueue = "queue"

// Feature describes the feature; without a port jobs are disabled.
func Feature(p Port) web.Feature {
	h := handlers{p}
	f := web.Feature{Name: "remote", Routes: h.routes()}
	if p == nil {
		f.Missing = []string{needsQueue}
	}
	return f
}

type handlers struct{ port Port }

func (h handlers) routes() []web.Route {
	at := func(path, name, summary string, body, answer any, handle func(*web.Request) error) web.Route {
		return web.Route{Method: http.MethodPost, Path: "/api/v1/workers" + path, Name: "workers." + name,
			Summary: summary, Scope: access.Work, Body: body, Answer: answer, Needs: needsQueue,
			Handle: onlyTokens(handle)}
	}
	register := at("", "register", "Register a program that runs jobs of its types.", WorkerRegistration{},
		WorkerRegistered{}, h.register)
	register.Status = http.StatusCreated
	leave := at("/:id", "leave", "End a worker that has stopped its jobs: they are due again at once.", nil, nil,
		h.leave)
	leave.Method, leave.Status = http.MethodDelete, http.StatusNoContent
	all := []web.Route{
		at("/:id/claim", "claim", "Take jobs that are due, or wait for one.", ClaimRequest{}, ClaimedJobs{}, h.claim),
		at("/:id/heartbeat", "heartbeat", "Say which jobs still run, how far they are, and what they log.",
			HeartbeatRequest{}, HeartbeatAnswer{}, h.heartbeat),
		at("/:id/complete", "complete", "A job is done; the answer comes when that is written.", CompleteRequest{}, nil,
			h.complete),
		at("/:id/fail", "fail", "A run failed: it is repeated while attempts are left, unless it is permanent.",
			FailRequest{}, nil, h.fail),
		at("/:id/release", "release", "Put a job back; the attempt does not count.", ReleaseRequest{}, nil, h.release),
	}
	for i := range all { // the history of the job says what happened: the audit log need not
		all[i].Quiet = true
		if all[i].Answer == nil {
			all[i].Status = http.StatusNoContent
		}
	}
	return append([]web.Route{register, leave}, all...)
}

// onlyTokens refuses people: a browser sends their session by itself.
func onlyTokens(handle func(*web.Request) error) func(*web.Request) error {
	return func(req *web.Request) error {
		if !strings.HasPrefix(req.Caller().Via, "token") {
			return web.Refuse(http.StatusForbidden, "A worker signs in with a token that has the scope work.")
		}
		return handle(req)
	}
}

func (h handlers) register(req *web.Request) error {
	var r WorkerRegistration
	if err := req.Decode(&r); err != nil {
		return err
	}
	s, err := h.port.Register(req.Ctx(), req.Caller().Via, r.registration(req.Caller().Types))
	if err != nil {
		return err
	}
	req.Audit(s.ID[:8], r.Name)
	lease := int(s.Lease / time.Second)
	return req.JSON(http.StatusCreated, WorkerRegistered{ID: s.ID, Lease: lease, Heartbeat: max(lease/3, 1),
		Queues: s.Queues})
}

func (h handlers) leave(req *web.Request) error {
	if err := h.port.Leave(req.Caller().Via, req.Param("id")); err != nil {
		return err
	}
	return req.NoContent(http.StatusNoContent)
}

func (h handlers) claim(req *web.Request) error {
	var r ClaimRequest
	if err := req.Decode(&r); err != nil {
		return err
	}
	list, orders, err := h.port.Claim(req.Ctx(), req.Caller().Via, req.Param("id"), r.Limit, seconds(r.Wait))
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, claimed(list, orders))
}

func (h handlers) heartbeat(req *web.Request) error {
	var r HeartbeatRequest
	if err := req.Decode(&r); err != nil {
		return err
	}
	beats := make([]remote.Beat, 0, len(r.Jobs))
	for _, j := range r.Jobs {
		beats = append(beats, remote.Beat{Lease: j.Lease, Progress: j.Progress, Lines: j.Log})
	}
	list, orders, err := h.port.Beat(req.Caller().Via, req.Param("id"), beats)
	if err != nil {
		return err
	}
	answer := HeartbeatAnswer{Jobs: make([]JobStatus, 0, len(list)), Stop: orders.Stop}
	for _, x := range list {
		answer.Jobs = append(answer.Jobs, JobStatus(x))
	}
	return req.JSON(http.StatusOK, answer)
}

func (h handlers) complete(req *web.Request) error {
	var r CompleteRequest
	if err := req.Decode(&r); err != nil {
		return err
	}
	return h.end(req, r.Lease, remote.Outcome{Result: r.Result})
}

func (h handlers) fail(req *web.Request) error {
	var r FailRequest
	if err := req.Decode(&r); err != nil {
		return err
	}
	return h.end(req, r.Lease, remote.Outcome{Error: cmp.Or(r.Error, "the worker gave no reason"),
		Permanent: r.Permanent})
}

func (h handlers) release(req *web.Request) error {
	var r ReleaseRequest
	if err := req.Decode(&r); err != nil {
		return err
	}
	return h.end(req, r.Lease, remote.Outcome{Released: true, Delay: seconds(r.Delay),
		Error: cmp.Or(r.Why, "the worker released it")})
}

// end answers when the end is written.
func (h handlers) end(req *web.Request, lease string, o remote.Outcome) error {
	err := h.port.End(req.Ctx(), req.Caller().Via, req.Param("id"), lease, o)
	if errors.Is(err, remote.ErrUnwritten) {
		return web.Refuse(http.StatusServiceUnavailable, "The end of the job is not written yet. Send it again.")
	}
	if err != nil {
		return err
	}
	return req.NoContent(http.StatusNoContent)
}
