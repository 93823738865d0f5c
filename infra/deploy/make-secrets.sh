#!/bin/sh
# Prints an environment file with new secrets. Keep this file: without pepper and keys every token is lost (`petrel keys
# seal`).
set -eu
hex() { od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'; }
echo "ADMIN_TOKEN=$(hex 32)"
echo "TOKEN_PEPPER=$(hex 32)"
echo "TOKEN_KEYS=k1:$(head -c 32 /dev/urandom | base64 | tr -d '\n')"
echo "REDIS_PASSWORD=$(hex 16)"
echo "POSTGRES_PASSWORD=$(hex 16)"
