-- serves 0024
-- An operator seals Redis before stopping it. Postgres then proves that nobody copied both servers back.
alter table partitions add column sealed_at timestamptz, add column seal_postgres timestamptz;
comment on column partitions.seal_postgres is 'Start of the server that noted the seal of an operator: the seal does not outlive it. Null for a seal by a role.';
