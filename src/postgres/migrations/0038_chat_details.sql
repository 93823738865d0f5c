-- What groups and channels show about themselves. `photo` holds its sizes, the largest first.
alter table chats add column description text not null default '', add column photo jsonb;
