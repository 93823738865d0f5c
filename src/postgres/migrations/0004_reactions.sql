-- Written behind, as posts are. The column emoji is 52 bits of a digest; the record holds the emoji itself.
create table post_reactions (
  partition bigint not null,
  number bigint not null,
  user_id bigint not null,
  emoji bigint not null,
  version bigint not null,
  record bytea,
  deleted_at timestamptz,
  primary key (partition, number, user_id, emoji)
);
create index on post_reactions (partition, number, emoji, version desc) where record is not null;
create index on post_reactions (deleted_at) where deleted_at is not null;
comment on table post_reactions is 'Who put which emoji on a post, and when.';

create table post_tallies (
  partition bigint not null,
  number bigint not null,
  emoji bigint not null,
  version bigint not null,
  record bytea,
  deleted_at timestamptz,
  primary key (partition, number, emoji)
);
create index on post_tallies (deleted_at) where deleted_at is not null;
comment on table post_tallies is 'How many users put an emoji on a post; the newest row of a post says how many users reacted to it.';
