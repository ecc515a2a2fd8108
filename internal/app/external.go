package app

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/handlers/external"
	"github.com/cmsjobs/cmsjobs/internal/handlers/webhook"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

// externalHandler joins the programs and requests that the configuration allows.
func externalHandler(registry *jobs.Registry, r *Services) error {
	e := r.Config.External
	c := external.Config{Commands: map[string]external.Command{}, Calls: map[string]external.Call{}, Sign: signRequest,
		Path: searchPath, Now: r.Now, Logger: r.Log,
		Client: outbound.New(outbound.Options{Timeout: external.MaxTimeout, AllowPrivate: e.Networks(), AllowHTTP: true,
			UserAgent: "cmsjobs/" + r.Version})}
	for name, x := range e.Commands {
		c.Commands[name] = external.Command{Program: x.Program, Args: x.Args, Dir: x.Dir, Env: revealed(x.Env),
			User: x.User, Timeout: x.Timeout, Memory: int64(x.Memory), Output: int(x.Output)}
	}
	if err := r.addPHPSchedule(c.Commands); err != nil {
		return err
	}
	for name, x := range e.Calls {
		c.Calls[name] = external.Call{URL: x.URL, Method: strings.ToUpper(x.Method), Body: x.Body,
			Header: revealed(x.Headers), Secret: x.Secret.Reveal(), Expect: x.Expect, Timeout: x.Timeout,
			Output: int(x.Output)}
	}
	h, err := external.New(c)
	if err != nil {
		return UsageError{Err: err}
	}
	h.Register(registry)
	return nil
}

func revealed(secrets map[string]config.Secret) map[string]string {
	plain := make(map[string]string, len(secrets))
	for name, s := range secrets {
		plain[name] = s.Reveal()
	}
	return plain
}

// searchPath is where programs find other programs, as cron has it: of the
// service's own environment they see nothing.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// signRequest signs by the Standard Webhooks specification.
func signRequest(h http.Header, secret, id string, at time.Time, body []byte) error {
	signature, err := webhook.Sign(secret, id, at, body)
	if err != nil {
		return err
	}
	h.Set(webhook.HeaderID, id)
	h.Set(webhook.HeaderTimestamp, strconv.FormatInt(at.Unix(), 10))
	h.Set(webhook.HeaderSignature, signature)
	return nil
}
