-- Restricted members, ends of bans and restrictions, titles of administrators.
alter table chat_members drop constraint chat_members_status_check;
alter table chat_members add constraint chat_members_status_check
  check (status in ('creator', 'administrator', 'member', 'restricted', 'left', 'kicked'));
alter table chat_members
  add column until_date bigint,
  add column custom_title text,
  add column promoted_by bigint;
create index on chat_members (member_id) where status in ('creator', 'administrator', 'member', 'restricted');
create index on chat_members (chat_id) where status = 'kicked';
-- Permissions of members that differ from the defaults, comma-separated.
alter table chats add column permissions text not null default '';
