-- Invite links of groups and channels, and requests to join.
create table invite_links (
  id bigint generated always as identity primary key,
  chat_id bigint not null references chats,
  code text not null unique,
  creator_id bigint not null,
  is_primary boolean not null,
  creates_join_request boolean not null,
  name text,
  expire_date bigint,
  member_limit integer,
  members integer not null default 0,
  revoked_at timestamptz,
  created_at timestamptz not null default now()
);
comment on column invite_links.code is 'A secret: everybody who knows it can join.';
comment on column invite_links.members is 'Current members who joined by the link.';
create index on invite_links (chat_id, id);
create unique index on invite_links (chat_id, creator_id) where is_primary and revoked_at is null;

create table join_requests (
  id bigint generated always as identity,
  chat_id bigint not null references chats,
  user_id bigint not null references users,
  link_id bigint references invite_links on delete set null,
  created_at timestamptz not null default now(),
  primary key (chat_id, user_id)
);
create index on join_requests (chat_id, id);
create index on join_requests (user_id);
create index on join_requests (link_id);

-- The link by which a current member joined.
alter table chat_members add column link_id bigint;
-- The link that an update shows, and the bots that are notified of a request to join. Null for other events.
alter table member_events add column link jsonb, add column request_bots bigint[];
