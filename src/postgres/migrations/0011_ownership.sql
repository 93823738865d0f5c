-- Who owns a bot, who may write to it, and what its owner sees of what was done with it.
alter table bots
  add column owned_since timestamptz not null default now(),
  add column write_policy text not null default 'all' check (write_policy in ('all', 'selected', 'owner')),
  add column write_version bigint not null default nextval('control_versions'),
  add column suspended_at timestamptz,
  add column deleted_at timestamptz,
  alter column owner_id drop not null,
  alter column token_hmac drop not null,
  alter column token_box drop not null;
update bots set owned_since = created_at;
comment on column bots.owned_since is 'Owners see of deliveries and of the audit log what came since.';
comment on column bots.write_version is 'Raised when who may write to the bot changes: what a chat keeps of it counts under its version alone.';
comment on column bots.deleted_at is 'The row of a deleted bot stays, without owner and token: people still read what it wrote.';

create table bot_writers (
  bot_id bigint not null references bots,
  user_id bigint not null references users,
  primary key (bot_id, user_id)
);
comment on table bot_writers is 'People who may write to a bot of the policy "selected", by id: a username may change.';

create table bot_transfers (
  bot_id bigint primary key references bots,
  from_id bigint not null references users,
  to_id bigint not null references users,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index on bot_transfers (to_id);
create index on bot_transfers (from_id);
comment on table bot_transfers is 'Transfers that wait for the consent of who would get the bot.';

create table bot_audit (
  id bigint generated always as identity primary key,
  bot_id bigint not null,
  actor_type text not null check (actor_type in ('user', 'bot', 'operator', 'service')),
  actor_id bigint,
  event text not null,
  details jsonb not null default '{}',
  at timestamptz not null default now()
);
create index on bot_audit (bot_id, id);
create index on bot_audit (at);
comment on table bot_audit is 'What was done with a bot, written in the transaction that did it. It holds no token.';

alter table users add column suspended_at timestamptz;

alter table names add column free_at timestamptz;
comment on column names.free_at is 'The name of a deleted bot: nobody''s, and until then nobody can take it.';
create index on names (name) where owner = 0;
comment on column names.owner is '0: reserved by an operator.';
