# weir in an image that holds nothing else: no shell, no libc, no root.
#
#	docker build -t weir .
#	docker run --read-only --cap-drop ALL -p 8080:8080 -v "$PWD/weir.yaml:/etc/weir/weir.yaml:ro" weir
FROM golang:1.25-bookworm AS build
WORKDIR /src
# The modules first: they change less often than the code.
COPY go.mod go.sum go.work go.work.sum ./
COPY redislimit/go.mod redislimit/go.sum redislimit/
COPY cmd/go.mod cmd/go.sum cmd/
COPY grpclimit/go.mod grpclimit/go.sum grpclimit/
COPY otellimit/go.mod otellimit/go.sum otellimit/
COPY limitertest/go.mod limitertest/go.sum limitertest/
COPY fuzz/go.mod fuzz/go.sum fuzz/
RUN cd cmd && go mod download
COPY . .
RUN cd cmd && CGO_ENABLED=0 go build -trimpath -buildvcs=auto -ldflags '-s -w' -o /weir ./weir
# The licenses of all that is inside, and a list of it (CycloneDX).
RUN packaging/kit licenses /licenses && packaging/kit sbom /sbom

FROM scratch
# Certificates of upstreams and of a store behind TLS are checked against these.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /weir /weir
COPY --from=build /licenses /licenses
COPY --from=build /sbom/weir.cdx.json /weir.cdx.json
COPY packaging/weir.yaml /etc/weir/weir.yaml
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=6s --start-period=5s CMD ["/weir", "health"]
ENTRYPOINT ["/weir"]
CMD ["serve", "/etc/weir/weir.yaml"]
