/** Answers of the application API, as far as the pages read them. */
export interface User {
  id: number;
  is_bot: boolean;
  first_name: string;
  last_name?: string;
  username?: string;
  language_code?: string;
  external_id?: string;
  /** Only for the person's own account. */
  add_to_groups?: AddPolicy;
}

export type AddPolicy = 'everyone' | 'shared_chats' | 'nobody';

export interface ChatRef {
  id: number;
  type: 'private' | 'group' | 'channel';
  title?: string;
  first_name?: string;
  last_name?: string;
  username?: string;
}

export interface Entity {
  type: string;
  offset: number;
  length: number;
  url?: string;
  user?: User;
  language?: string;
}

export interface Button {
  text: string;
  callback_data?: string;
  url?: string;
}

export interface FileRef {
  file_id: string;
  file_unique_id: string;
  file_size?: number;
  /** Only for media stored by URL. */
  url?: string;
  width?: number;
  height?: number;
  duration?: number;
  file_name?: string;
  mime_type?: string;
  performer?: string;
  title?: string;
}

/** Content that is neither text nor a file. */
export type ObjectKind = 'location' | 'venue' | 'contact';

export interface Point {
  latitude: number;
  longitude: number;
}

export type MediaKind = 'photo' | 'video' | 'animation' | 'audio' | 'voice' | 'document';

export interface Message {
  message_id: number;
  from?: User;
  sender_chat?: ChatRef;
  chat: ChatRef;
  date: number;
  edit_date?: number;
  has_protected_content?: true;
  text?: string;
  entities?: Entity[];
  caption?: string;
  caption_entities?: Entity[];
  photo?: FileRef[];
  video?: FileRef;
  animation?: FileRef;
  audio?: FileRef;
  voice?: FileRef;
  document?: FileRef;
  location?: Point;
  venue?: { location: Point; title: string; address: string };
  contact?: { phone_number: string; first_name: string; last_name?: string };
  has_media_spoiler?: true;
  media_group_id?: string;
  reply_markup?: { inline_keyboard: Button[][] };
  forward_origin?: { type: 'user'; sender_user?: User } | { type: 'channel'; chat: ChatRef };
  reply_to_message?: Message;
  pinned_message?: Message;
  notify?: boolean;
}

/** The preview of a message in the list of chats. */
export interface Preview {
  message_id: number;
  date: number;
  kind: 'text' | MediaKind | ObjectKind | 'pinned_message' | 'service';
  from?: User;
  /** The beginning of the text. */
  text?: string;
  file_name?: string;
}

export interface ChatSummary extends ChatRef {
  member_count?: number;
  /** In a direct chat: the avatar of the bot. */
  avatar?: Picture;
  last_message?: Preview;
  /** Only for a chat without messages. */
  joined_at?: number;
  pinned_message?: Preview;
  unread_count?: number;
  muted?: true;
  /** Unix time in seconds; absent if muted without an end. */
  muted_until?: number;
  /** Only for a channel. */
  can_post?: true;
}

/** An invitation to a group or channel, from somebody who may not add the person directly. */
export interface Invitation {
  chat: ChatRef;
  member_count: number;
  from?: User;
  date: number;
}

export interface Reaction {
  emoji: string;
  count: number;
  user_ids: string[];
  user_ids_truncated?: true;
}

export interface Post {
  id: number;
  external_id: string;
  chat: ChatRef;
  message_id: number;
  author?: User;
  date: number;
  edit_date?: number;
  text?: string;
  caption?: string;
  entities?: Entity[];
  media?: FileRef & { type: MediaKind };
  reply_markup?: { inline_keyboard: Button[][] };
  reactions: Reaction[];
  liked_by_me: boolean;
}

export interface Picture {
  url: string;
  width: number;
  height: number;
  small?: Picture;
}

export interface Command {
  command: string;
  description: string;
}

export interface BotPage {
  id: number;
  username: string;
  name: string;
  description: string;
  short_description: string;
  avatar?: Picture;
  start_picture?: Picture;
  commands?: Command[];
  can_write: boolean;
}

export interface OwnBot {
  id: number;
  username: string;
  name: string;
}

export type Texts = Record<string, string>;

export interface OwnBotSettings extends OwnBot {
  avatar?: Picture;
  start_picture?: Picture;
  texts: { name: Texts; description: Texts; short_description: Texts };
  write_access: { policy: 'all' | 'selected' | 'owner'; usernames?: string[] };
}

export interface Member {
  user: User | null;
  status: string;
  rights: Record<string, boolean>;
}

export interface Page<T> {
  items: T[];
  next_cursor?: string;
}

/** Properties of each page of the person's own bot. */
export interface BotProps {
  bot: OwnBotSettings;
  changed: () => void;
}
