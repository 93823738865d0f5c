-- Under which incarnation the last number of a sequence was given out. `version` is that of the last change, which an edit
-- under a later incarnation raises: numbers that were lost before it must be skipped all the same.
alter table chat_sequences add column incarnation bigint not null default 0;
update chat_sequences set incarnation = version >> 40;
alter table post_sequences add column incarnation bigint not null default 0;
update post_sequences set incarnation = version >> 40;
