/** The rows of interface §§2-4 and 6-8 that the table has not: what each waits for is not built. */

export interface LeftOut {
  readonly row: string;
  /** A bot method by its name, or an endpoint as `POST /api/…`. */
  readonly waitsFor: string;
}

export const leftOut: readonly LeftOut[] = [
  {
    row: '§2 Other identity items: start picture, 640x360, shown before Start is pressed; §8 its size',
    waitsFor: 'PUT /api/me/bots/{bot_id}/start_picture',
  },
  {
    row: '§2 Other identity items: avatar, set in the application, cropped to a circle',
    waitsFor: 'PUT /api/me/bots/{bot_id}/avatar',
  },
];
