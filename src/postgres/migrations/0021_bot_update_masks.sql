-- serves 0020
-- Which kinds of updates a bot asked for: written behind, since a poll may change it. No row for a bot that never asked.
create table bot_update_masks (
  bot_id bigint primary key,
  version bigint not null,
  record bytea,
  deleted_at timestamptz
);
create index on bot_update_masks (deleted_at) where deleted_at is not null;
comment on column bot_update_masks.record is 'A msgpack array of the mask.';
