package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// toxiproxy is Shopify's server of that name in a separate process: bad
// networks, by name. Its API is https://github.com/Shopify/toxiproxy.
type toxiproxy struct {
	api   string
	ports map[string]int // where each network begins
	cmd   *exec.Cmd
}

// startToxiproxy builds the server of bench/peers/toxiproxy and makes a network
// to each port.
func startToxiproxy(ctx context.Context, dir string, to map[string]int) (*toxiproxy, error) {
	binary := filepath.Join(dir, "toxiproxy")
	if err := command(ctx, "go", "build", "-C", "bench/peers/toxiproxy", "-o", binary,
		"github.com/Shopify/toxiproxy/v2/cmd/server"); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	p := &toxiproxy{api: fmt.Sprintf("http://127.0.0.1:%d", port), ports: map[string]int{},
		cmd: exec.Command(binary, "-host", "127.0.0.1", "-port", fmt.Sprint(port))} //nolint:noctx // close ends it
	log, err := os.Create(filepath.Join(dir, "logs", "toxiproxy.log"))
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for name, upstream := range to {
		if p.ports[name], err = freePort(); err != nil {
			return p, err
		}
		proxy := map[string]any{"name": name, "listen": fmt.Sprintf("127.0.0.1:%d", p.ports[name]),
			"upstream": fmt.Sprintf("127.0.0.1:%d", upstream), "enabled": true}
		for try := 0; ; try++ { // it opens its port a moment after its start
			if err = p.call("POST", "/proxies", proxy); err == nil || try == 100 {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p *toxiproxy) close() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // killed, as we wanted
}

// cut ends every connection of a network and refuses new ones for a while.
func (p *toxiproxy) cut(name string, length time.Duration) error {
	if err := p.call("POST", "/proxies/"+name, map[string]any{"enabled": false}); err != nil {
		return err
	}
	time.Sleep(length)
	return p.call("POST", "/proxies/"+name, map[string]any{"enabled": true})
}

// poison gives a network a toxic for a while: latency, bandwidth, slicer,
// timeout (0 is a black hole), reset_peer.
func (p *toxiproxy) poison(name, toxic string, attributes map[string]any, length time.Duration) error {
	for _, stream := range []string{"upstream", "downstream"} {
		if err := p.call("POST", "/proxies/"+name+"/toxics", map[string]any{"name": toxic + stream, "type": toxic,
			"stream": stream, "attributes": attributes}); err != nil {
			return err
		}
	}
	time.Sleep(length)
	for _, stream := range []string{"upstream", "downstream"} {
		if err := p.call("DELETE", "/proxies/"+name+"/toxics/"+toxic+stream, nil); err != nil {
			return err
		}
	}
	return nil
}

func (p *toxiproxy) call(method, path string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequest(method, p.api+path, bytes.NewReader(text)) //nolint:noctx // to our own process
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, 1000))
	if err == nil && answer.StatusCode > 299 {
		err = fmt.Errorf("toxiproxy: %s %s: %s: %s", method, path, answer.Status, said)
	}
	return err
}
