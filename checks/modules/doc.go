// Package modules holds the product's go.mod to what the product needs.
package modules
