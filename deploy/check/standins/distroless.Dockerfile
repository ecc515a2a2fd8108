FROM localhost/cmsjobs-stand-in-busybox AS folders
RUN mkdir -p /root-of-it/tmp /root-of-it/etc /root-of-it/home/nonroot && chmod 1777 /root-of-it/tmp && \
    printf 'root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n' >/root-of-it/etc/passwd && \
    printf 'root:x:0:\nnonroot:x:65532:\n' >/root-of-it/etc/group && chown 65532:65532 /root-of-it/home/nonroot
FROM scratch
COPY --from=folders /root-of-it /
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY zoneinfo /usr/share/zoneinfo
ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt PATH=/usr/local/bin:/usr/bin:/bin
WORKDIR /home/nonroot
USER 65532
