// Package framing finds requests whose length is said twice, by Content-Length
// and by Transfer-Encoding. net/http takes the second and hides the first, as
// RFC 9112 (6.3) allows; a proxy in front may take the first and then see
// another request where the service sees a body (request smuggling).
//
// It parses nothing else. Invariants: at most maxHead bytes of a connection are
// kept, from its last answer to the end of the next request's head; a request
// with Transfer-Encoding whose head was not seen as a whole is not clear.
// Over the service's own TLS a connection is looked at once it is decrypted and
// speaks HTTP/1.1; HTTP/2 says lengths in one way only and is left to net/http.
package framing
