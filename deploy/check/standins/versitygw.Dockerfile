FROM localhost/cmsjobs-stand-in-busybox
COPY root /
COPY versitygw /usr/local/bin/versitygw
RUN mkdir -p /tmp
EXPOSE 7070
ENTRYPOINT ["/usr/local/bin/versitygw"]
