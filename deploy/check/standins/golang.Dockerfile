FROM localhost/cmsjobs-stand-in-busybox
COPY go /usr/local/go
COPY modules /modules
RUN mkdir -p /tmp /root && chmod 1777 /tmp
ENV PATH=/usr/local/go/bin:/bin HOME=/root GOPATH=/go GOTOOLCHAIN=local GOPROXY=file:///modules GOSUMDB=off
