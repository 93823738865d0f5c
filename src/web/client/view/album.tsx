/** Shows the media of a message or of an album. Pictures and videos form a grid without holes, other files a list. */
import type { ReactNode } from 'react';
import type { MessageEntity } from '../types.js';
import { t } from '../words.js';
import { Media, type Medium } from './media.js';
import { RichText } from './text.js';

export interface Caption {
  readonly text: string;
  readonly entities: readonly MessageEntity[] | undefined;
}

export interface AlbumItem {
  /** The id of the message or post that contains the file. */
  readonly id: number;
  readonly medium: Medium;
  readonly caption: Caption | undefined;
}

/**
 * Opens a picture or video in the viewer. In the viewer, the person can move between the media in `all`, by default
 * between all media of the chat.
 */
export type OnOpen = (item: AlbumItem, all?: readonly AlbumItem[]) => void;

const pictureKinds: readonly string[] = ['photo', 'video', 'animation'];

export const arePictures = (items: readonly AlbumItem[]): boolean =>
  items.length > 0 && items.every(({ medium }) => pictureKinds.includes(medium.kind));

/**
 * Returns whether each file shows its own caption, instead of one caption below the album. True if the album has no
 * pictures and several captions.
 */
export const hasOwnCaptions = (items: readonly AlbumItem[]): boolean =>
  !arePictures(items) && items.filter(({ caption }) => caption).length > 1;

/**
 * Returns the width of a tile in sixths of the grid's width. The first rows have fewer tiles than the later rows, so
 * that every row is filled.
 */
export function widthOf(index: number, count: number): 2 | 3 | 6 {
  if (count === 3) return index === 0 ? 6 : 3;
  const halves = [0, 4, 2][count % 3] ?? 0;
  return index < halves ? 3 : 2;
}

interface AlbumProps {
  items: readonly AlbumItem[];
  open: OnOpen;
  /** The time of a message without text, which is shown over the lower edge of the pictures. */
  children?: ReactNode;
}

export function Album({ items, open, children }: AlbumProps) {
  const show = (item: AlbumItem) => (
    <Media
      key={item.id}
      medium={item.medium}
      alt={item.caption?.text ?? t('media_photo')}
      open={() => open(item)}
    />
  );
  if (items.length > 1 && arePictures(items))
    return (
      <div className="album">
        {items.map((item, i) => (
          <div key={item.id} className={`tile of${widthOf(i, items.length)}`}>
            {show(item)}
            {i === items.length - 1 && children}
          </div>
        ))}
      </div>
    );
  return (
    <div className="media">
      {items.map((item) => (
        <div key={item.id}>
          {show(item)}
          {hasOwnCaptions(items) && item.caption && (
            <p className="text" dir="auto">
              <RichText {...item.caption} />
            </p>
          )}
        </div>
      ))}
      {children}
    </div>
  );
}
