-- serves 0017
-- Failures of deliveries are written much, are never changed, and end by their age: a partition for each day, in UTC, which goes in one
-- piece. Those that are in delivery_attempts stay there until they are as old. Programs of before write theirs there too.
create table delivery_failures (
  bot_id bigint not null,
  id bigint not null,
  update_id bigint not null,
  at timestamptz not null,
  status int,
  error text,
  latency_ms int not null,
  answer text not null,
  tries int not null,
  next_try_at timestamptz,
  dead text,
  primary key (bot_id, id, at)
) partition by range (at);
comment on table delivery_failures is 'What owners see of deliveries that failed, bounded by age and number. Ids are those of delivery_attempts, which keeps the successes.';
create index on delivery_failures (bot_id, update_id);

-- Whatever no day was made for: an insert never fails for want of a partition.
create table delivery_failures_default partition of delivery_failures default;
create index on delivery_failures_default (at);
