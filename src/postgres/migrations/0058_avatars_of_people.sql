-- serves 0049
-- Avatars of people.
alter table users add column avatar jsonb;
comment on column users.avatar is 'The sizes of the avatar, largest first. Null if the person has no avatar.';
create index on users using gin (avatar jsonb_path_ops) where avatar is not null;
