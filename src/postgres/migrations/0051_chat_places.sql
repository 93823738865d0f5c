-- serves 0049
-- Chats that a person pinned at the top of the list, or moved to the archive (behaviour §11).
create table chat_places (
  user_id bigint not null references users on delete cascade,
  chat_id bigint not null,
  pin int,
  archived_through bigint,
  primary key (user_id, chat_id),
  check ((pin is null) <> (archived_through is null))
);
comment on column chat_places.chat_id is 'Id of the chat for the person. For a direct chat, the id of its bot.';
comment on column chat_places.pin is 'The chat with the greatest number comes first. Null for an archived chat.';
comment on column chat_places.archived_through is 'The newest message when the chat was archived. A newer message ends the archiving, unless the chat is muted.';
