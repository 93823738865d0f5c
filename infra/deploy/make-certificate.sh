#!/bin/sh
# Prints a self-signed certificate for a name, and its key, for a year: make-certificate.sh NAME > cert.pem
# Clients must be configured to trust this certificate. For all other clients, use a certificate of a public authority.
set -eu
umask 077
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 -subj "/CN=$1" \
  -addext "subjectAltName=DNS:$1" -addext basicConstraints=critical,CA:FALSE -keyout "$folder/key.pem" -out "$folder/cert.pem" 2>/dev/null
cat "$folder/cert.pem" "$folder/key.pem"
