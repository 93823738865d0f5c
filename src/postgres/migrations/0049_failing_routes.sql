-- Webhook routes whose receivers accept nothing (behaviour §10).
create table failing_routes (
  bot_id bigint not null references bots,
  slot smallint not null,
  since timestamptz not null default now(),
  told_at timestamptz,
  primary key (bot_id, slot)
);
comment on table failing_routes is 'Routes that have accepted nothing since a failure. Setting or deleting a route removes its row.';
comment on column failing_routes.told_at is 'When the owner got a notice. Null before.';
