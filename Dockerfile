# mortise in an image without a shell:  docker build -t mortise --build-arg VERSION=v1.2.3 .
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false \
      -ldflags="-s -w -X github.com/mortise-dev/mortise/internal/program.release=${VERSION}" -o /out/ ./cmd/mortise ./cmd/mortise-hook \
 && mkdir -p /data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/mortise /out/mortise-hook /usr/local/bin/
COPY --from=build --chown=65532:65532 /data /data
COPY --from=build --chown=65532:65532 /data /tmp
USER 65532:65532
ENV PATH=/usr/local/bin HOME=/data
WORKDIR /data
VOLUME /data
EXPOSE 8420
ENTRYPOINT ["mortise"]
# The operator mounts mortise.yaml. What listens beyond loopback needs the tokens that it names.
CMD ["serve", "--config", "/data/mortise.yaml", "--listen", "0.0.0.0:8420"]
