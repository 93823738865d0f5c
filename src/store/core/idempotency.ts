/** Idempotency keys: which call has a key, from what its request ids are made, and what it answered (behaviour §1). */
import { randomBytes } from 'node:crypto';
import { limits } from '../../limits.js';
import { type StoreContext, uniqueText } from './context.js';
import { type Caller, callerText } from './keys.js';

export interface IdempotentCall {
  readonly caller: Caller;
  /** What is called; with the key it names the call. */
  readonly method: string;
  readonly key: string;
  /** The parameters in one form whatever way they came; kept only as a keyed fingerprint. */
  readonly parameters: string;
  /** The call makes something that stays: it is refused while Redis is full. */
  readonly grows: boolean;
}

export type Claim =
  | {
      readonly state: 'run';
      /** For `Store.under`: the same for every run of the call. */
      readonly seed: string;
      /** A former run may have changed something. */
      readonly again: boolean;
      /**
       * Keeps the answer, sealed, for limits.idempotency_ttl_ms; the first of two stays. One over
       * limits.idempotency_answer_bytes_max is not kept beside the record that the scripts remember: the next run makes it again.
       */
      keep(answer: string): Promise<void>;
      /** Lets the next call with the key run. */
      release(): Promise<void>;
    }
  | { readonly state: 'answered'; readonly answer: string }
  | { readonly state: 'pending' | 'other_parameters' | 'too_many' };

export interface Idempotency {
  /**
   * `run` for a key that is new, was given back, or was held by a run that is longer than limits.idempotency_lease_ms;
   * `pending` while another run holds it. One round trip.
   */
  claim(call: IdempotentCall): Promise<Claim>;
}

const nothing = Buffer.alloc(0);

export function createIdempotency({ scripts, keys, secrets }: StoreContext): Idempotency {
  /** Keyed: neither a key nor the parameters can be had, or tried out, from what Redis holds. */
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
