package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
)

func main() {
	if err := write(os.Stdout, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "countries:", err)
		os.Exit(1)
	}
}

func write(w io.Writer, r io.Reader) error {
	var networks map[string]map[string]any
	if err := json.NewDecoder(r).Decode(&networks); err != nil {
		return fmt.Errorf("reading the networks: %w", err)
	}
	// Reserved networks hold the addresses of examples (RFC 5737, RFC 3849).
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "GeoLite2-Country", RecordSize: 24,
		IncludeReservedNetworks: true})
	if err != nil {
		return err
	}
	for text, known := range networks {
		_, network, err := net.ParseCIDR(text)
		if err != nil {
			return err
		}
		if err := tree.Insert(network, value(known)); err != nil {
			return fmt.Errorf("inserting %s: %w", text, err)
		}
	}
	_, err = tree.WriteTo(w)
	return err
}

func value(v any) mmdbtype.DataType {
	switch v := v.(type) {
	case string:
		return mmdbtype.String(v)
	case float64:
		return mmdbtype.Uint32(v)
	case map[string]any:
		m := mmdbtype.Map{}
		for key, inner := range v {
			m[mmdbtype.String(key)] = value(inner)
		}
		return m
	}
	return mmdbtype.Bool(v == true)
}
