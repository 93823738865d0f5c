-- serves 0023
-- Tokens of administrators by name. What stands here cannot be turned back into a token.
create table admin_tokens (
  id bigint generated always as identity primary key,
  name text not null unique,
  fingerprint bytea not null unique,
  created_at timestamptz not null default now(),
  expires_at timestamptz
);

create table admin_calls (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  token text not null,
  action text not null,
  target text not null,
  address text not null,
  status smallint,
  times integer not null default 1,
  hour timestamptz
);
comment on table admin_calls is 'Calls of administrators. Calls that change nothing are one row an hour if they are alike. A change without a status began, and its end is not known.';
create unique index on admin_calls (hour, token, action, target, address, status) where hour is not null;
create index on admin_calls (at);
