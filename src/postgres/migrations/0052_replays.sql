-- serves 0049
-- Replays of stored updates into a webhook (decision 0081).
create table history_replays (
  id bigint generated always as identity primary key,
  bot_id bigint not null references bots,
  slot smallint not null,
  from_update_id bigint not null,
  from_time timestamptz,
  last_update_id bigint not null,
  started_at timestamptz not null default now(),
  ended_at timestamptz,
  cancelled boolean not null default false,
  closed boolean not null default false,
  reached bigint,
  fed bigint not null default 0,
  dead bigint not null default 0,
  claimed_until timestamptz not null default now()
);
comment on column history_replays.slot is 'Slot of the route that gets the updates. 0 for the webhook itself.';
comment on column history_replays.from_time is 'Updates from before this time are skipped. Null for a replay from an id.';
comment on column history_replays.closed is 'Whether the queue of the replay in Redis was removed.';
comment on column history_replays.reached is 'The id up to which updates were replayed. Stored at the end, as are fed and dead.';
comment on column history_replays.claimed_until is 'Until then, one worker serves the replay.';
create unique index on history_replays (bot_id) where not closed;
create index on history_replays (bot_id, id);
create index on history_replays (claimed_until) where not closed;

-- Delivered updates, with UPDATES_DAYS. A partition for each day, as in delivery_failures.
create table kept_updates (
  bot_id bigint not null,
  update_id bigint not null,
  at timestamptz not null,
  user_id bigint not null,
  record bytea not null,
  primary key (bot_id, update_id, at)
) partition by range (at);
comment on table kept_updates is 'Delivered updates that can be replayed. An update that was delivered twice has two rows.';
comment on column kept_updates.user_id is 'The person or bot that caused the update. 0 for none. The rows of a deleted person are deleted.';
create index on kept_updates (user_id) where user_id <> 0;
create table kept_updates_default partition of kept_updates default;
create index on kept_updates_default (at);
