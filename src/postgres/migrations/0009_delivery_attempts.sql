create table delivery_attempts (
  bot_id bigint not null,
  id bigint generated always as identity,
  update_id bigint not null,
  at timestamptz not null,
  delivered boolean not null,
  status int,
  error text,
  latency_ms int not null,
  answer text not null,
  tries int not null,
  next_try_at timestamptz,
  dead text,
  record bytea,
  primary key (bot_id, id)
);
comment on table delivery_attempts is 'What owners see of deliveries: every failure and the last successes of each bot, bounded by age and number.';
comment on column delivery_attempts.record is 'The update of a delivery, so that its owner can have it delivered again.';
create index on delivery_attempts (bot_id, id) where delivered;
create index on delivery_attempts (bot_id, id) where not delivered;
create index on delivery_attempts (bot_id, update_id);
create index on delivery_attempts (at);

create table delivery_counts (
  bot_id bigint primary key,
  delivered bigint not null default 0,
  failed bigint not null default 0,
  dead bigint not null default 0,
  unkept bigint not null default 0
) with (fillfactor = 50);
comment on column delivery_counts.unkept is 'Failures that were counted but not kept, because Postgres was away for too long.';

create table webhook_replays (
  id bigint generated always as identity primary key,
  bot_id bigint not null,
  records bytea[] not null,
  update_ids bigint[] not null,
  created_at timestamptz not null default now()
);
comment on table webhook_replays is 'Updates on their way back into the queue of their bot: taken out of dead_updates in the same transaction.';
