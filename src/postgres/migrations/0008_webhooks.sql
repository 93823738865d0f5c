create table webhooks (
  bot_id bigint primary key references bots,
  url_box bytea,
  secret_box bytea,
  certificate text,
  max_connections int not null default 40,
  ip_address text,
  signing_box bytea not null,
  former_signing_box bytea,
  former_until timestamptz,
  version bigint not null default nextval('control_versions'),
  set_at timestamptz not null default now()
);
comment on table webhooks is 'How updates are pushed to a bot. The row stays when the webhook is deleted: it holds the signing secret.';
comment on column webhooks.url_box is 'AES-256-GCM with the id of its key: URLs often carry a token. Null while the bot polls.';

create index on dead_updates (created_at);
