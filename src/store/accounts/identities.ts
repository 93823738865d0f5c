/** Maps subjects of the identity provider to people. The settings allow one issuer at a time. */
import { createHash } from 'node:crypto';
import { fail } from '../../errors.js';
import * as rows from '../../postgres/accounts/identities.js';
import type { NewUser } from '../../postgres/accounts/users.js';
import { welcome } from '../../postgres/bots/notices.js';
import type { Sql } from '../../postgres/sql.js';
import type { Auth } from '../access/auth.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import { createTextCopies } from '../core/text_copies.js';

export type Identities = ReturnType<typeof createIdentities>;

export function createIdentities(context: StoreContext, control: ControlCopies, auth: Auth) {
  const { db, keys, issuer } = context;
  /**
   * Returns the digest of a subject. Keys contain the digest instead of the subject, because subjects come from outside
   * and may be long.
   */
  const digestOf = (of: string, subject: string) =>
    createHash('sha256')
      .update(JSON.stringify([of, subject]))
      .digest('base64url');
  const copiesOf = (of: string, subject: string) =>
    createTextCopies(context, keys.identity, async () => {
      const row = await rows.loadIdentity(db, of, subject);
      return { version: row?.version ?? 0, id: row?.user_id ?? 0 };
    });
  const refresh = (of: string, subject: string) => copiesOf(of, subject).refresh(digestOf(of, subject));
  const present = () => issuer ?? fail('no_identity_provider');

  return {
    /**
     * Returns the person with this subject, or null if the subject is unknown. Must be fast, because calls wait for it.
     */
    async find(subject: string): Promise<number | null> {
      const of = present();
      return (await copiesOf(of, subject).read(digestOf(of, subject))) || null;
    },
    /**
     * Returns the person with this subject, or creates the person. `signsUp` is true in the web application. The
     * management bot then welcomes a new person.
     */
    async create(subject: string, user: NewUser, signsUp = false): Promise<rows.FoundPerson> {
      const of = present();
      const found = await rows.createForSubject(db, of, subject, user, signsUp ? welcome : undefined);
      await Promise.all([control.refresh('user', found.id), refresh(of, subject)]);
      return found;
    },
    /**
     * Unlinks a person from the current subject, and links the person to `subject` if it is not null. Afterwards no
     * node accepts tokens with the previous subject. Errors: `no_identity_provider`, `user_not_found`, `subject_taken`.
     */
    async link(user: number, subject: string | null) {
      const of = present();
      const former = (await rows.setSubject(db, of, user, subject)) ?? fail('user_not_found');
      const changed = subject === null ? former : [...former, subject];
      await Promise.all(changed.map((each) => refresh(of, each)));
      if (former.length > 0) await auth.revoke(`user:${user}`);
    },
    /**
     * Returns two functions that link a subject to a new person. Call the first in the transaction that creates the
     * person, and the second after the commit. Errors: `no_identity_provider`, `subject_taken`.
     */
    taking(subject: string): {
      readonly within: (sql: Sql, user: number) => Promise<void>;
      readonly after: () => Promise<void>;
    } {
      const of = present();
      return {
        within: (sql, user) => rows.takeSubject(sql, of, user, subject),
        after: () => refresh(of, subject),
      };
    },
    async refresh(id: number) {
      const row = await rows.loadIdentityById(db, id);
      if (row) await refresh(row.issuer, row.subject);
    },
  };
}
