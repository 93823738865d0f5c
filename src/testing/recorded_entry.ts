/** Describes an entry in a world's recording. */

/** A JSON value in an answer. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
export type Json = any;

/** A person's action, a call by the bot, or a delivery to the bot. */
export interface RecordedEntry {
  readonly n: number;
  /** Unix time in ms, according to the test server's clock. */
  readonly at: number;
  readonly kind: 'action' | 'call' | 'delivery';
  /** The name of the action or method, or the kind of the delivered update. */
  readonly name: string;
  readonly person?: string;
  readonly params: Json;
  /** The HTTP status of the answer, or 0 if a receiver did not answer. */
  readonly status: number;
  readonly answer: Json;
  /** Set if a fault replaced the answer. */
  readonly fault?: 'not done' | 'answer lost';
  /**
   * Only for an action: the `n` of the latest entry when the action began. The bot may react before the action ends.
   */
  readonly began_after?: number;
}
