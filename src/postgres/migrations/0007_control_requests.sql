-- Which changes of control records a call under an idempotency key has made, noted in the transaction that makes them.
create table control_requests (
  request text primary key,
  result jsonb,
  created_at timestamptz not null default now()
);
create index on control_requests (created_at);
comment on table control_requests is 'A run that comes after one that died finds here what that one did. Removed after a day.';
