-- serves 0045
-- Sets of stickers that bots made. The stickers are one value, because every change of a set rewrites their order.
create table sticker_sets (
  name text primary key,
  bot_id bigint not null references bots,
  shown_name text not null,
  title text not null,
  stickers jsonb not null,
  created_at timestamptz not null default now()
);
create index on sticker_sets (bot_id);
create index on sticker_sets using gin (stickers jsonb_path_ops);
comment on column sticker_sets.name is 'In lower case. Without case, names are unique.';
comment on column sticker_sets.stickers is 'Array of stickers in their order: key, size, mime, width, height, emoji, keywords.';
