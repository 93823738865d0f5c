/** Defines the types of the wire format, and types that only the pages use. */
import type {
  Audio,
  Document,
  InlineKeyboard,
  MessagePreview,
  OwnedBotSettings,
  PhotoSize,
  Poll,
  Self,
  Sticker,
  Video,
  Post as WirePost,
} from './types.gen.js';

export type * from './types.gen.js';

export type AddPolicy = Self['add_to_groups'];

export type Button = InlineKeyboard['inline_keyboard'][number][number];

/** A file of any kind. The width and the height of a video note are its `length`. */
export type FileRef = Document & Partial<PhotoSize & Video & Audio & Pick<Sticker, 'emoji' | 'set_name'>>;

/** The kinds of content that have neither text nor a file. */
export type ObjectKind = Extract<MessagePreview['kind'], 'location' | 'venue' | 'contact' | 'dice' | 'poll'>;

/** The fields that make a Message a service message. */
export const serviceKinds = [
  'pinned_message',
  'group_chat_created',
  'new_chat_members',
  'left_chat_member',
  'new_chat_title',
  'new_chat_photo',
  'delete_chat_photo',
] as const;
export type ServiceKind = (typeof serviceKinds)[number];

export type MediaKind = Exclude<MessagePreview['kind'], ObjectKind | ServiceKind | 'text' | 'service'>;

/** A post. Its media may have the fields of any kind of file, so that the pages show all kinds in the same way. */
export type Post = Omit<WirePost, 'media'> & {
  media?: (FileRef & { type: MediaKind }) | { type: 'poll'; poll: Poll };
};

export interface Page<T> {
  items: T[];
  next_cursor?: string;
}

/** The properties of each page about one of the person's own bots. */
export interface BotProps {
  bot: OwnedBotSettings;
  changed: () => void;
}
