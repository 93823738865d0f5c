-- serves 0024
-- Uploaded files by whose upload they were. Files that were stored before count for nobody.
create table stored_files (
  key text primary key,
  owner_id bigint not null,
  bytes bigint not null,
  created_at timestamptz not null default now()
);
create index on stored_files (created_at);
comment on table stored_files is 'Noted before a file is written and struck off after it was removed. Pictures of bots are not among them.';

create table stored_totals (
  owner_id bigint primary key,
  bytes bigint not null
);
comment on table stored_totals is 'Sum of the bytes of stored_files by owner.';
