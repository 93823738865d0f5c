-- A new signing secret changes what deliveries carry, and nothing of where they go: what failed and when it is tried again stay.
alter table webhooks add column set_version bigint not null default 0;
update webhooks set set_version = version;
alter table webhooks
  add column failing_since timestamptz,
  add column failing_told_at timestamptz;
comment on column webhooks.failing_since is 'Nothing was delivered since, though it was tried.';
comment on column webhooks.failing_told_at is 'When the owner was told of it.';
comment on column webhooks.set_version is 'The version by which the webhook was last set or deleted; 0 for a bot that never had one.';
