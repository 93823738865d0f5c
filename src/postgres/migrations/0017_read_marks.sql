-- How far a person has read each chat. Nothing else waits for it, and it is asked for with the list of chats alone.
create table read_marks (
  user_id bigint not null references users on delete cascade,
  chat_id bigint not null,
  message_id bigint not null,
  primary key (user_id, chat_id)
);
comment on column read_marks.chat_id is 'As the person names the chat: a direct chat by its bot.';
