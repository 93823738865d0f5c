/** Idempotency keys: claims a key for a call, seeds its request ids, and stores its answer (behaviour §1). */
import { randomBytes } from 'node:crypto';
import { limits } from '../../limits.js';
import { type StoreContext, uniqueText } from './context.js';
import { type Caller, callerText } from './keys.js';

export interface IdempotentCall {
  readonly caller: Caller;
  /** The method or endpoint; together with the key it identifies the call. */
  readonly method: string;
  readonly key: string;
  /** The parameters in canonical form. Only a keyed fingerprint is stored. */
  readonly parameters: string;
  /** Whether the call adds data; such a call is rejected while Redis is full. */
  readonly grows: boolean;
}

export type Claim =
  | {
      readonly state: 'run';
      /** Seed for `Store.under`, the same for every run of the call. */
      readonly seed: string;
      /** An earlier run may have changed something. */
      readonly again: boolean;
      /**
       * Stores the encrypted answer for limits.idempotency_ttl_ms; the first of two is kept. An answer over
       * limits.idempotency_answer_bytes_max is not stored: the next run builds it again from the record that the
       * scripts remember.
       */
      keep(answer: string): Promise<void>;
      /** Releases the key, so that the next call with it can run. */
      release(): Promise<void>;
    }
  | { readonly state: 'answered'; readonly answer: string }
  | { readonly state: 'pending' | 'other_parameters' | 'too_many' };

export interface Idempotency {
  /**
   * Claims a key, in one round trip. Returns `run` for a key that is new, released, or held for longer than
   * limits.idempotency_lease_ms; `pending` while another run holds it.
   */
  claim(call: IdempotentCall): Promise<Claim>;
}

const nothing = Buffer.alloc(0);

export function createIdempotency({ scripts, keys, secrets }: StoreContext): Idempotency {
  /** Keyed digests, so that neither keys nor parameters can be read or guessed from the data in Redis. */
  const fingerprint = (what: string, ...parts: readonly string[]) =>
    secrets.fingerprint(JSON.stringify([`idempotency ${what}`, ...parts]));

  return {
    async claim({ caller, method, key, parameters, grows }) {
      const digest = fingerprint('key', callerText(caller), method, key).toString('base64url');
      const partition = keys.partitions.of(caller.id);
      // Each key takes memory for a day.
      if (grows && scripts.isFull(partition)) return { state: 'too_many' };
      const claim = keys.idempotency(caller, digest);
      const box = `idempotency:${callerText(caller)}:${digest}` as const;
      const holder = uniqueText();
      const bytes = keys.idempotencyBytes(caller);
      const settle = async (answer: Buffer, size: number) => {
        await scripts.call('idempotency/settle', partition, { claim, bytes }, { holder, answer, size });
      };
      const found = await scripts.call(
        'idempotency/claim',
        partition,
        { claim, live: keys.idempotencyLive(caller), bytes },
        {
          digest,
          fingerprint: fingerprint('parameters', method, parameters),
          seed: randomBytes(15).toString('base64url'),
          holder,
        },
      );
      if (found.status !== 'ok') return { state: found.status };
      if (found.answer !== null) return { state: 'answered', answer: secrets.open(found.answer, box) };
      return {
        state: 'run',
        seed: found.seed,
        again: found.again,
        keep(answer) {
          const size = Buffer.byteLength(answer);
          return settle(
            size > limits.idempotency_answer_bytes_max ? nothing : secrets.seal(answer, box),
            size,
          );
        },
        release: () => settle(nothing, 0),
      };
    },
  };
}
